"""`constrained_sim run`: simulates what a parameter file describes, without ROS."""

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from constrained_sim.cli.texts import Json, finite, say, say_once, write_json

if TYPE_CHECKING:
    from constrained_sim.cli.outputs import Write
    from constrained_sim.config import Config
    from constrained_sim.trajectory import Trajectory

NODE_ONLY = ("duration", "record", "record_topics", "command_timeout")
"""Parameters of the node that would change what comes out here, or where it goes."""


def run_command(
    robot: Annotated[str, typer.Argument(help="Parameter file (also package://NAME/PATH), or a robot of the package.")],
    duration: Annotated[float, typer.Option(help="Simulated seconds.", min=0.0, callback=finite)] = 5.0,
    controller: Annotated[
        str, typer.Option(help="What the robot's controller does, FILE.py:FUNCTION with efforts(t, q, v), or none.")
    ] = "none",
    assignments: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="Other value of a parameter; may be repeated.")
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    output: Annotated[Optional[Path], typer.Option(help="Result for Trajectory.load (.npz).")] = None,
    plot: Annotated[
        Optional[Path], typer.Option(help="Pictures: all in one (.pdf), or a file each (.png, .svg).")
    ] = None,
    bag: Annotated[Optional[Path], typer.Option(help="New directory of a rosbag2 recording (MCAP).")] = None,
    as_json: Json = False,
) -> None:
    """Simulate what a parameter file describes, without ROS, and keep the result.

    Of a run that fails, what was simulated before is kept; of one that is interrupted, nothing.

    `constrained_sim list robots` tells the robots that come with the package.

    Examples:
        $ constrained_sim run leg --controller hop --duration 5 --output hop.npz --plot hop.pdf

        $ constrained_sim run my_robot.yaml --controller my_law.py:efforts --set contacts.foot.friction=0.3 --json
    """
    from constrained_sim.cli.controllers import controller_of
    from constrained_sim.cli.outputs import checked_outputs
    from constrained_sim.cli.parameters import find_robot, read_assignments
    from constrained_sim.exceptions import ControllerFailed
    from constrained_sim.testing.simulated_robot import read_parameters

    file = find_robot(robot)
    config = read_parameters(file, read_assignments(assignments))
    law = controller_of(controller, file, config)
    outputs = checked_outputs(output, plot, bag)
    with _quiet():
        sim = config.simulator()
    for note in _notes(config):
        say_once(note)
    begin = time.monotonic()
    try:
        with _quiet():
            trajectory = sim.run(duration, law, config.node.control_period or None, progress=not as_json)
    except KeyboardInterrupt:
        say(f"interrupted at {sim.state.t:g} s of {duration:g} s{', nothing is written' if outputs else ''}")
        raise
    except SystemExit as error:
        _write_until(sim.state.t, error, outputs, config)
        raise ControllerFailed.by_exit(controller, sim.state.t, error) from error
    except Exception as error:
        _write_until(sim.state.t, error, outputs, config)
        raise
    seconds = time.monotonic() - begin
    files = [path for write in outputs for path in write(trajectory, config)]
    summary = _summary(trajectory, config, seconds, file, files)
    write_json(summary) if as_json else _print(summary)


def _write_until(t: float, error: BaseException, outputs: "list[Write]", config: "Config") -> None:
    """Write what was simulated before an `error` at `t` [s], if there is a step; what cannot be written is told."""
    done = getattr(error, "trajectory", None)
    if done is None or not len(done.t):
        return
    for write in outputs:
        try:
            files = ", ".join(map(str, write(done, config)))
        except Exception as problem:  # the failure of the run is what ends the command
            say(f"not written: {problem}")
        else:
            say(f"written until the failure at {t:g} s: {files}")


def _quiet() -> "contextlib.AbstractContextManager[None]":
    """Return a context in which NumPy says nothing of overflows, of a controller's neither.

    What is not finite is refused by name.
    """
    import numpy as np

    return np.errstate(over="ignore", invalid="ignore")


def _notes(config: "Config") -> list[str]:
    """Return what is in a parameter file and does nothing here."""
    notes = [str(text) for text in getattr(config.robot, "ignored", ())]
    unused = [name for name in NODE_ONLY if getattr(config.node, name)]
    if unused:
        notes.append(f"used by the node only: {', '.join(unused)}; here there are --duration, --bag and --output")
    if config.sensors:
        notes.append(f"sensors are read by the node only: {', '.join(sensor.name for sensor in config.sensors)}")
    return notes


def _summary(
    trajectory: "Trajectory", config: "Config", seconds: float, file: Path, files: list[Path]
) -> dict[str, Any]:
    """Return what a run came to."""
    steps = len(trajectory.t)
    last = {name: forces[-1].tolist() for name, forces in trajectory.contact_forces.items()} if steps else {}
    return {
        "robot": str(file),
        "solver": config.simulation.solver,
        "stepper": config.simulation.stepper,
        "steps": steps,
        "t": float(trajectory.t[-1]) if steps else 0.0,
        "q": (trajectory.q[-1] if steps else config.q).tolist(),
        "v": (trajectory.v[-1] if steps else config.v).tolist(),
        "contact_forces": last,
        "impacts": len(trajectory.impacts),
        "energy_lost_in_impacts": float(sum(impact.energy_lost for impact in trajectory.impacts)),
        "wall_seconds": round(seconds, 3),
        "notes": _notes(config),
        "files": [str(path) for path in files],
    }


def _print(summary: dict[str, Any]) -> None:
    """Write a summary for people."""
    print(f"{summary['t']:g} s simulated in {summary['wall_seconds']:.2f} s, {summary['steps']} steps")
    print(f"impacts: {summary['impacts']}, energy lost in them: {summary['energy_lost_in_impacts']:.6g} J")
    for name, force in summary["contact_forces"].items():
        print(f"force on {name} at the end: ({', '.join(f'{value:.6g}' for value in force)}) N")
    for path in summary["files"]:
        print(f"wrote {path}")
