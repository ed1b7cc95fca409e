"""Pages of the browser that show a simulation, or a recorded run."""

from __future__ import annotations

from constrained_sim.exceptions import InvalidValue
from constrained_sim.simulator import Controller, Simulator
from constrained_sim.trajectory import Setup, Trajectory
from constrained_sim.validation import function, instance, whole_number
from constrained_sim.viewer.page import LAST_PORT, Page
from constrained_sim.viewer.simulator_source import SimulatorSource
from constrained_sim.viewer.trajectory_source import TrajectorySource


def view_simulator(simulator: Simulator, controller: Controller | None, port: int) -> Page:
    """Show a simulator that runs, see :meth:`~constrained_sim.Simulator.view`."""
    if controller is not None:
        function("controller", controller, "controller(t, q, v) -> tau")
    port = whole_number("port", port, 1, LAST_PORT)
    return Page(SimulatorSource(simulator, controller), port).serve_in_background()


def view_trajectory(trajectory: Trajectory, setup: Setup | None, port: int) -> Page:
    """Show a run that is over, see :meth:`~constrained_sim.Trajectory.view`."""
    shown = trajectory.setup if setup is None else instance("setup", setup, Setup, "an instance of Setup")
    if shown is None:
        raise InvalidValue("setup", None, "Setup(robot, constraints), since this run came from a file")
    source = TrajectorySource(trajectory, shown.robot, shown.constraints, shown.collisions)
    return Page(source, port).serve_in_background()
