"""`constrained_sim new`: a parameter file, a controller and a test for a robot."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from constrained_sim.cli.texts import Json, finite, positive, say, write_json, wrong_use

if TYPE_CHECKING:
    from constrained_sim.bringup.plan import Plan


def new_command(
    robot: Annotated[
        str, typer.Argument(help="Robot description: URDF, xacro, SDF or MJCF; also package://NAME/PATH.")
    ],
    name: Annotated[str, typer.Option(help="Name of the files (default: that of the description).")] = "",
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path(),
    floating_base: Annotated[
        Optional[bool],
        typer.Option(
            "--floating-base/--fixed-base", help="Whether the root is free (default: if it has legs, or no joints)."
        ),
    ] = None,
    feet: Annotated[
        list[str],
        typer.Option("--foot", metavar="LINK", help="Link or frame that touches the ground; may be repeated."),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    dt: Annotated[float, typer.Option(help="Step and control period [s].", callback=positive)] = 0.001,
    friction: Annotated[
        Optional[float],
        typer.Option(
            help="Coulomb coefficient of all contacts (default: that of their geometry, else 0.8).",
            min=0.0,
            callback=finite,
        ),
    ] = None,
    frequency: Annotated[float, typer.Option(help="Wanted of the joints' feedback [Hz].", callback=positive)] = 5.0,
    ask: Annotated[
        Optional[bool], typer.Option("--ask/--no-ask", help="Ask for name and base (default: in a terminal).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write NAME.yaml, NAME_controller.py and test_NAME.py for a robot that stands; refuses to overwrite.

    Contacts are the lowest points of its legs, the posture is bent and balanced, gains are stable at the period. There
    is no test for a robot that does not stay where it is put, as one on two points.

    Examples:
        $ constrained_sim new my_robot.urdf

        $ constrained_sim run my_robot.yaml --controller my_robot_controller.py:efforts --duration 2
    """
    from constrained_sim.bringup.files import target_files, write_files
    from constrained_sim.bringup.plan import guessed_base, plan_for, read_description

    if name and not name.isidentifier():
        raise wrong_use("--name", f"got {name!r}, allowed: letters, digits and _, as in my_robot")
    name = name or re.sub(r"\W", "_", Path(robot).name.split(".")[0])
    asks = not as_json and (sys.stdin.isatty() if ask is None else ask)
    if asks:
        name = typer.prompt("Name of the files", default=name)
    target_files(name, folder)  # refused before anything is computed
    description = read_description(robot, floating_base)
    if asks and floating_base is None:
        guess = description.robot.floating_base
        floating_base = typer.confirm("Is its base free to move, as that of a walking robot", default=guess)
        description = description if floating_base == guess else read_description(robot, floating_base)
    if (note := guessed_base(description, floating_base)) and not as_json:
        say(note)
    plan = plan_for(description, feet, dt, friction, frequency)
    files = write_files(plan, robot, name, folder)
    report = _report(plan, name, files)
    write_json(report) if as_json else _print(report, folder)


def _report(plan: "Plan", name: str, files: list[Path]) -> dict[str, Any]:
    """Return what was proposed."""
    return {
        "name": name,
        "floating_base": plan.robot.floating_base,
        "contacts": [contact.name for contact in plan.contacts],
        "q": plan.q.tolist(),
        "efforts": dict(zip(plan.robot.actuated_joints, plan.standing.tau.tolist(), strict=True)),
        "statics_residual": float(abs(plan.standing.residual).max()),
        "notes": list(plan.notes),
        "files": [str(file) for file in files],
    }


def _print(report: dict[str, Any], folder: Path) -> None:
    """Write a report for people."""
    from constrained_sim.bringup.plan import EQUILIBRIUM_TOLERANCE

    print(f"contacts: {', '.join(report['contacts']) or 'none, its base is fixed'}")
    if report["contacts"]:
        print(f"base: {report['q'][2]:.4g} m above the ground")
    if report["efforts"]:
        largest = max(report["efforts"], key=lambda joint: abs(report["efforts"][joint]))
        print(f"largest effort at rest: {report['efforts'][largest]:.4g} N m or N, at {largest}")
    if report["statics_residual"] > EQUILIBRIUM_TOLERANCE:
        print(f"not in equilibrium: {report['statics_residual']:.3g} N m or N are missing; change the posture")
    for note in report["notes"]:
        print(f"note: {note}")
    for file in report["files"]:
        print(f"wrote {file}")
    base = folder / report["name"]
    print(f"next: constrained_sim run {base}.yaml --controller {base}_controller.py:efforts --duration 2")
    there = "" if folder == Path() else f"cd {folder} && "  # the node looks for relative paths where it is started
    print(f"with ROS: {there}ros2 run constrained_sim simulator --ros-args --params-file {report['name']}.yaml")
