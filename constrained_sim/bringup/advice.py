"""Advice on a robot description, each with its reason."""

from __future__ import annotations

import numpy as np

from constrained_sim.collision.robot_shapes import mesh_path
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import ModelError, listed
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.visuals import missing_visuals

MASS_RATIO = 1e4
"""Of the heaviest to the lightest moving body, from which on contact forces lose digits."""

LIGHT = 1e-4
"""kg m^2, kg: apparent inertia of an actuated joint below which gains have to be small."""


def advice_on(robot: Robot, dt: float) -> tuple[str, ...]:
    """Return what to change in the description of `robot` for steps of `dt` [s], at its neutral configuration."""
    M = Dynamics.at(robot, robot.within_limits(robot.neutral()), np.zeros(robot.nv)).M
    apparent = 1.0 / np.diag(np.linalg.inv(M))
    return (
        *_masses(robot),
        *_light(robot, apparent, dt),
        *_limits(robot),
        *_fast(robot, apparent, dt),
        *_meshes(robot),
    )


def _masses(robot: Robot) -> list[str]:
    masses = {str(n): float(i.mass) for n, i in list(zip(robot.model.names, robot.model.inertias, strict=True))[1:]}
    moving = {name: mass for name, mass in masses.items() if mass > 0.0}
    light, heavy = min(moving, key=lambda name: moving[name]), max(moving, key=lambda name: moving[name])
    ratio = moving[heavy] / moving[light]
    if ratio < MASS_RATIO:
        return []
    return [
        f"what joint {heavy!r} moves is {ratio:.1g} times as heavy as what {light!r} moves: contact forces there lose "
        f"{np.log10(ratio):.0f} digits; fix light links to their parents, or correct their masses"
    ]


def _light(robot: Robot, apparent: Array, dt: float) -> list[str]:
    light = [i for i in robot.actuation if apparent[i] < LIGHT and robot.model.armature[i] == 0.0]
    if not light:
        return []
    least = min(light, key=lambda i: apparent[i])
    return [
        f"joints {listed(robot.velocity_names[i] for i in light)} feel little inertia ({apparent[least]:.1e} kg m^2 or "
        f"kg at {robot.velocity_names[least]}): efforts held over {dt:g} s are stable with damping below "
        f"{2.0 * apparent[least] / dt:.1e} there; give them the armature of their rotors (robot.joints.NAME.armature)"
    ]


def _limits(robot: Robot) -> list[str]:
    found = []
    names = [robot.velocity_names[i] for i in robot.actuation]
    if unlimited := [n for n, limit in zip(names, robot.effort_limits, strict=True) if np.isinf(limit)]:
        found.append(f"no effort limit at {listed(unlimited)}: a controller can ask for any effort there and gets it")
    lower, upper = robot.position_limits
    scalar = [name for name in robot.actuated_joints if robot.joint_models[name].nq == 1]
    at = {name: robot.joint_models[name].idx_v for name in scalar}
    if open_ended := [name for name, i in at.items() if np.isinf(lower[i]) or np.isinf(upper[i])]:
        found.append(f"no position limits at {listed(open_ended)}: links can pass through each other there")
    if any(np.isfinite(lower[i]) for i in at.values()):
        found.append("position limits act only with joint_limits: true in the parameter file")
    return found


def _fast(robot: Robot, apparent: Array, dt: float) -> list[str]:
    rates = np.sqrt(np.maximum(robot.stiffness, 0.0) / apparent)
    found = []
    if (fast := int(np.argmax(rates))) is not None and rates[fast] * dt > 0.5:
        found.append(
            f"the spring in {robot.velocity_names[fast]!r} swings at {rates[fast] / (2 * np.pi):.0f} Hz, too fast for "
            f"steps of {dt:g} s: its motion is wrong in phase and size; take dt below {0.5 / rates[fast]:.1e} s"
        )
    return found


def _meshes(robot: Robot) -> list[str]:
    """Return what is missing, once for each file; a link that cannot collide goes before one that is not shown."""
    missing: dict[str, str] = {}
    for element in robot.collision_elements:
        if element.kind == "mesh" and element.vertices is None:
            try:
                mesh_path(robot, element.file)
            except ModelError as error:
                missing[element.file] = f"link {element.link!r} cannot collide: {error.message}"
    return list((missing_visuals(robot) | missing).values())
