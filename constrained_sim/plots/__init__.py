"""Pictures of a run: contact forces, joints, friction cones, residuals, energy, impacts (extra ``plot``).

A :class:`~constrained_sim.plots.recording.Recording` holds what is drawn; :func:`~constrained_sim.plots.reading.read`
makes one of a rosbag2 directory or of a saved trajectory, :func:`~constrained_sim.plots.figures.make_figures` draws it.
"""
