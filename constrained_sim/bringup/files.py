"""Writes what is planned for a new robot: a parameter file, a controller and a test of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from constrained_sim.bringup.plan import Plan
from constrained_sim.exceptions import ConfigError
from constrained_sim.joints import single_joints
from constrained_sim.whole_file import write_texts

CONTROLLER = '''"""Holds {name} in its initial configuration: a place to begin."""

from pathlib import Path

from constrained_sim import Posture, load_config, standing_efforts

CONFIG = load_config(Path(__file__).with_name("{name}.yaml"))

# Stiffness [N m/rad, N/m] and damping [N m s/rad, N s/m] by joint, for efforts held over {dt:g} s. The largest that are
# stable there stand behind them (see constrained_sim.suggest_gains).
GAINS = {{
{gains}
}}

ROBOT = CONFIG.robot
STIFFNESS, DAMPING = zip(*(GAINS[joint] for joint in ROBOT.actuated_joints), strict=True)
CONTACTS = [constraint for constraint in CONFIG.constraints if constraint.kind == "point_contact"]
STANDING = standing_efforts(ROBOT, CONFIG.q, CONTACTS).tau
POSTURE = Posture(ROBOT, CONFIG.q, STIFFNESS, DAMPING, ROBOT.clamp(STANDING))


def efforts(t, q, v):
    """Return (nu,) the efforts [N m, N] at time t [s], configuration q (nq,) and velocity v (nv,)."""
    return POSTURE.efforts(q, v)
'''

AT_REST = '''"""Lets {name} rest: it has no joint that a posture could hold."""

from pathlib import Path

import numpy as np

from constrained_sim import load_config

CONFIG = load_config(Path(__file__).with_name("{name}.yaml"))

ROBOT = CONFIG.robot
CONTACTS = [constraint for constraint in CONFIG.constraints if constraint.kind == "point_contact"]


def efforts(t, q, v):
    """Return (nu,) the efforts [N m, N] at time t [s], configuration q (nq,) and velocity v (nv,)."""
    return np.zeros(ROBOT.nu)
'''

TEST = '''"""{name} stays where it is put; if it stands on feet, the ground carries its weight."""

from pathlib import Path

import numpy as np
from {name}_controller import CONFIG, CONTACTS, ROBOT, efforts

from constrained_sim.testing import DirectRobot


def test_it_stays():
    """Two seconds after the start it is where it began."""
    with DirectRobot(Path(__file__).with_name("{name}.yaml"), efforts) as robot:
        robot.run(2.0)
        now = robot.now
    assert np.abs(now.q - CONFIG.q).max() < 0.05  # [m, rad]
    if CONTACTS:
        carried = sum(contact.force[2] for contact in now.contacts.values())
        assert abs(carried / (9.81 * ROBOT.mass) - 1.0) < 0.01
'''


def target_files(name: str, folder: Path) -> tuple[Path, Path, Path]:
    """Return where the parameter file, the controller and the test are to be written.

    Args:
        name: of the files.
        folder: that exists.

    Raises:
        ConfigError: one of the files is there already, no such folder, or a name that Python cannot import.
    """
    if not name.isidentifier():
        raise ConfigError(f"name of the robot: got {name!r}, allowed: letters, digits and _, as in my_robot")
    if not folder.is_dir():
        raise ConfigError(f"there is no directory {str(folder)!r}")
    files = folder / f"{name}.yaml", folder / f"{name}_controller.py", folder / f"test_{name}.py"
    if there := [str(path) for path in files if path.exists()]:
        raise ConfigError(f"{', '.join(there)}: there already, and not overwritten; allowed: another name or folder")
    return files


def write_files(plan: Plan, description: str, name: str, folder: Path) -> list[Path]:
    """Write ``NAME.yaml``, ``NAME_controller.py`` and, for a robot that stays, ``test_NAME.py``; return their paths.

    Args:
        plan: for the robot.
        description: its file, as given.
        name: of the files.
        folder: that exists.

    Raises:
        ConfigError: see :func:`target_files`; or they cannot be written, and none is.
    """
    parameters, controller, test = target_files(name, folder)
    texts = {
        parameters: parameter_text(plan, _reference(description, folder)),
        controller: _controller(plan, name),
        **({test: TEST.format(name=name)} if plan.stays else {}),
    }
    return write_texts(texts)


def parameter_text(plan: Plan, description: str) -> str:
    """Return the text of a parameter file, for the node and for Python."""
    robot = plan.robot
    lines = ["# Written by `constrained_sim new`; config/leg.yaml of the package explains every parameter."]
    lines += ["/**:", "  ros__parameters:", "    robot:", f"      {plan.format}: {_quoted(description)}"]
    if plan.format != "mjcf":
        lines.append(f"      floating_base: {'true' if robot.floating_base else 'false'}")
    if plan.unheld and robot.nu:  # the node knows no empty list; without one they take the efforts of zero
        lines.append(f"      actuated_joints: [{', '.join(map(_quoted, robot.actuated_joints))}]")
    lines += ["", "    initial:", *_initial_lines(plan), *_servo_lines(plan), *_contact_lines(plan)]
    lines += ["", f"    dt: {plan.dt:.9f}".rstrip("0"), f"    control_period: {plan.dt:.9f}".rstrip("0"), ""]
    return "\n".join(lines)


def _initial_lines(plan: Plan) -> list[str]:
    """Return where the base and the joints begin."""
    robot = plan.robot
    lines = [f"      base_pose: {_list(plan.q[:7])}   # x y z, quaternion x y z w"] if robot.floating_base else []
    singles = single_joints(robot.joint_models)
    positions = []
    for name in robot.joint_names[1 if robot.floating_base else 0 :]:
        joint = robot.joint_models[name]
        at_start = (
            f"{singles[name].position(plan.q):.7f}" if name in singles else _list(plan.q[joint.idx_q :][: joint.nq])
        )
        positions.append(f"        {_quoted(name)}: {at_start}")
    lines += ["      positions:", *positions] if positions else []
    if robot.constraints:
        lines.append("    assemble: true                      # the digits above are rounded")
    return lines


def _servo_lines(plan: Plan) -> list[str]:
    """Return the gains of the joints; nothing where none can be held."""
    if not plan.robot.nu:
        return []
    lines = ["", "    servo:   # gains of joints that follow commanded positions; the controller's own are in its file"]
    for joint, k, d in zip(plan.robot.actuated_joints, plan.gains.stiffness, plan.gains.damping, strict=True):
        lines.append(f"      {_quoted(joint)}: {{stiffness: {_rounded(k)}, damping: {_rounded(d)}}}")
    return lines


def _contact_lines(plan: Plan) -> list[str]:
    """Return the contacts with the ground, and which places are guessed."""
    lines = []
    for contact in plan.contacts:
        radius = f", radius: {contact.radius:.6g}" if contact.radius else ""
        point = f"link: {_quoted(contact.link)}, point: {_list(contact.point)}{radius}"
        guess = "   # point guessed: no collision geometry, measure yours" * (contact.link in plan.guessed)
        lines.append(f"      {_quoted(contact.name)}: {{{point}, friction: {float(contact.friction)}}}{guess}")
    return ["", "    contacts:", *lines] if lines else []


def _controller(plan: Plan, name: str) -> str:
    if not plan.robot.nu:
        return AT_REST.format(name=name)
    rows = zip(plan.robot.actuated_joints, *plan.gains[:4], strict=True)
    gains = [f'    "{joint}": ({k:.5g}, {d:.5g}),  # below {kb:.3g}, {db:.3g}' for joint, k, d, kb, db in rows]
    return CONTROLLER.format(name=name, dt=plan.dt, gains="\n".join(gains))


def _reference(description: str, folder: Path) -> str:
    """Return how a file in `folder` names the description."""
    if "://" in description:
        return description
    return os.path.relpath(Path(description).resolve(), folder.resolve())


def _rounded(value: float) -> float:
    """Return a number of five digits, which is written with a point, as ROS wants it."""
    return float(f"{value:.5g}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _list(values: Iterable[float]) -> str:
    return "[" + ", ".join(f"{float(value) + 0.0:.7f}" for value in values) + "]"
