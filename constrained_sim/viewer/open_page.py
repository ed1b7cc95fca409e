"""Pages of the browser that show a simulation, or a recorded run."""

from __future__ import annotations

from collections.abc import Callable

from constrained_sim.simulator import Controller, Simulator
from constrained_sim.trajectory import Setup, Trajectory
from constrained_sim.validation import function
from constrained_sim.viewer.page import PORT, Page
from constrained_sim.viewer.simulator_source import SimulatorSource
from constrained_sim.viewer.source import Source
from constrained_sim.viewer.trajectory_source import TrajectorySource


def show(
    source: Source,
    say: Callable[[str], None],
    port: int = PORT,
    browser: bool = True,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Show `source` until `goes_on` says no, or Ctrl-C.

    Args:
        source: of what is shown.
        say: writes where the page is.
        port: of the page, or the next one that is free.
        browser: open the page in the user's browser.
        goes_on: is asked before each picture.

    Raises:
        InvalidValue: no port.
        MissingLibrary: the one that shows it.
    """
    with Page(source, port) as page:
        say(f"shown at {page.url} until Ctrl-C")
        if browser:
            page.open()
        page.serve(goes_on)


def view_simulator(simulator: Simulator, controller: Controller | None, port: int) -> Page:
    """Show a simulator that runs, see :meth:`~constrained_sim.Simulator.view`."""
    if controller is not None:
        function("controller", controller, "controller(t, q, v) -> tau")
    return Page(SimulatorSource(simulator, controller), port).serve_in_background()


def view_trajectory(trajectory: Trajectory, setup: Setup | None, port: int) -> Page:
    """Show a run that is over, see :meth:`~constrained_sim.Trajectory.view`."""
    return Page(TrajectorySource(trajectory, setup), port).serve_in_background()
