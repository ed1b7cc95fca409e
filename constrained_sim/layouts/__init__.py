"""Layout files of a robot for RViz 2, Foxglove and PlotJuggler."""

from constrained_sim.layouts.files import layout_texts, write_layouts

__all__ = ["layout_texts", "write_layouts"]
