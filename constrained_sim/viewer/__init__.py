"""A page in the browser that shows a robot, its contacts and its forces; viser draws it (extra ``viewer``).

A :class:`~constrained_sim.viewer.page.Page` draws the frames of one source. Live sources (a running node, a
``Simulator``) take commands; recordings (a bag, a ``Trajectory``) have a time line.
"""
