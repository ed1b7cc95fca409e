"""The command ``constrained_sim``: one file for each of its commands; none imports more than it needs."""
