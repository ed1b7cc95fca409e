"""How kernels become machine code: compiled once each, kept on disk, and shared by all that call them."""
