"""`constrained_sim check`: what a robot description holds, and what to do about it."""

from typing import Annotated, Optional

import typer

from constrained_sim.cli.texts import Json, positive, say, write_json


def check_command(
    robot: Annotated[
        str, typer.Argument(help="Robot description: URDF, xacro, SDF or MJCF; also package://NAME/PATH.")
    ],
    floating_base: Annotated[
        Optional[bool],
        typer.Option("--floating-base/--fixed-base", help="Whether the root is free (default: if it has legs)."),
    ] = None,
    dt: Annotated[
        float, typer.Option(help="Step and control period [s] that the advice is for.", callback=positive)
    ] = 0.001,
    as_json: Json = False,
) -> None:
    """Show links, joints, loops, collision geometry and frames of a robot, what is not used, and advice.

    Exits with 0 where the robot can be simulated, advice or not; with 1, and the reason, where it cannot.

    Examples:
        $ constrained_sim check my_robot.urdf

        $ constrained_sim check my_robot.sdf --fixed-base --dt 0.002 --json
    """
    from constrained_sim.bringup.plan import guessed_base, read_description

    description = read_description(robot, floating_base)
    if (note := guessed_base(description, floating_base)) and not as_json:
        say(note)
    summary = description.robot.summary(dt)
    write_json(summary.as_dict()) if as_json else print(summary)
