"""The command ``constrained_sim``: one file for each of its commands; none imports more than it needs."""

INTERRUPTED = 130
"""Exit code after Ctrl-C; it stands where nothing else is imported."""
