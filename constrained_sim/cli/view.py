"""`constrained_sim view`: shows a running node, a recording, a result or a robot in the browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from constrained_sim.cli.texts import say

if TYPE_CHECKING:
    from constrained_sim.viewer.source import Source

Robot = Annotated[
    str, typer.Option(help="Parameter file or shipped robot that a result (.npz), or a foreign recording, is of.")
]


def view_command(
    source: Annotated[
        str, typer.Argument(help="Recording, result of `run --output`, parameter file or robot; none: a running node.")
    ] = "",
    robot: Robot = "",
    controller: Annotated[
        str, typer.Option(help="Of a robot that is simulated here: one of its modes, FILE.py:FUNCTION, or none.")
    ] = "none",
    port: Annotated[int, typer.Option(help="Of the page; the next one that is free.", min=1, max=65535)] = 8080,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Show a robot with its contacts and forces on a page of the browser, on this machine only.

    Without a source: what a running node simulates (needs ROS 2). A recording has a time line. A parameter file is
    simulated here, without ROS, with buttons to pause, step, reset and push.

    Examples:
        $ constrained_sim view

        $ constrained_sim view recordings/leg_bag

        $ constrained_sim view hop.npz --robot leg

        $ constrained_sim view quadruped --controller trot
    """
    if not source:
        from constrained_sim.optional import ros_module

        ros_module("constrained_sim.ros.viewer", "a running node").show_node("constrained_sim", port, browser)
        return
    from constrained_sim.viewer.open_page import show

    show(source_of(source, robot, controller), say, port, browser)


def source_of(text: str, robot: str = "", controller: str = "none") -> "Source":
    """Return what shows a recording, a result, or a robot that is simulated here.

    Raises:
        ConstrainedSimError: it is none of them, or cannot be read.
    """
    from constrained_sim.bag_reader import is_bag
    from constrained_sim.cli.controllers import controller_of
    from constrained_sim.cli.parameters import find_robot
    from constrained_sim.exceptions import ConfigError
    from constrained_sim.plots.reading import notes_on
    from constrained_sim.testing.simulated_robot import read_parameters
    from constrained_sim.trajectory import Setup, Trajectory
    from constrained_sim.viewer.bag_source import BagSource
    from constrained_sim.viewer.simulator_source import SimulatorSource
    from constrained_sim.viewer.trajectory_source import TrajectorySource

    path = Path(text)
    config = read_parameters(find_robot(robot), {}) if robot else None
    if controller != "none" and (is_bag(path) or path.suffix == ".npz"):
        raise ConfigError(f"--controller: got {controller!r} beside {text!r}, allowed: none, of what is over already")
    if is_bag(path):
        return BagSource(path, config)
    if path.suffix == ".npz":
        if config is None:
            raise ConfigError(f"{text!r} does not tell which robot it is of, allowed: --robot PARAMETERS")
        trajectory, setup = Trajectory.load(path), Setup(config.robot, config.constraints, config.collisions)
        shown = TrajectorySource(trajectory, setup)
        for note in notes_on(trajectory, setup):
            say(note)
        return shown
    file = find_robot(text)
    config = read_parameters(file, {})
    return SimulatorSource(config.simulator(), controller_of(controller, file, config))
