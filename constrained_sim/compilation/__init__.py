"""Compilation of kernels: once each, kept on disk, and shared by all that call them."""
