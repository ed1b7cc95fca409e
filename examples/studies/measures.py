"""Measures of the example studies: functions of a Trajectory."""


def highest(trajectory):
    """Return the highest position of the leg's slider [m]."""
    return trajectory.q[:, 0].max()
