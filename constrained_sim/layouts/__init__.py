"""What RViz 2, Foxglove and PlotJuggler show of a robot, as the files that they open."""

from constrained_sim.layouts.files import layout_texts, write_layouts

__all__ = ["layout_texts", "write_layouts"]
