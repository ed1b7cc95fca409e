"""Draws the pictures of the theory page, with the package's own numbers where it has some."""

from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import NullFormatter

from constrained_sim import CustomConstraint, Robot, Simulator, constrained_acceleration, constraint_system
from constrained_sim.textbook import null_space_method

FOLDER = Path(__file__).resolve().parents[1] / "images" / "theory"
BLUE, RED, GREEN, GREY = "#2563a8", "#c23b22", "#3f8f3f", "#777777"
STYLE = {"font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "theory", "font.family": "sans-serif"}

PENDULUM = """<robot name="pendulum"><link name="base"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-9" upper="9" effort="99" velocity="99"/></joint>
  <link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.08" iyy="0.08" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="elbow" type="revolute"><origin xyz="0 0 -1"/><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/><limit lower="-9" upper="9" effort="99" velocity="99"/></joint>
  <link name="lower"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.08" iyy="0.08" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""

STEPPERS = {
    "explicit_euler": ("smooth", 1),
    "semi_implicit_euler": ("smooth", 1),
    "backward_euler": ("smooth", 1),
    "midpoint": ("smooth", 2),
    "time_stepping": ("time_stepping", 2),
    "rk4": ("smooth", 4),
}
"""What the picture of orders compares: the stepper, and the order that is claimed."""

FRICTION = 0.6
DURATION = 0.4  # s of the pendulum
COUNTS = (8, 16, 32, 64, 128, 256)  # steps in it


def arrow(axes: Axes, start: Any, end: Any, colour: str) -> None:
    """Draw an arrow between two points."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 12}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def label(axes: Axes, point: Any, offset: tuple[int, int], text: str, colour: str) -> None:
    """Write beside a point, on white, so that lines do not cross the letters."""
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    axes.annotate(text, point, offset, textcoords="offset points", color=colour, bbox=white)


def plain(axes: Axes, x: str, y: str) -> None:
    """Show the two axes through the origin, with their names at their ends."""
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[])
    axes.axhline(0, color=GREY, lw=0.8, zorder=0)
    axes.axvline(0, color=GREY, lw=0.8, zorder=0)
    axes.annotate(x, (1, 0), (0, 4), ("axes fraction", "data"), "offset points", ha="right", color=GREY)
    axes.annotate(y, (0, 1), (4, 0), ("data", "axes fraction"), "offset points", va="top", color=GREY)


def spaces() -> Figure:
    """Draw the motion that a constraint leaves: nearest to the free one in the metric of M, and its two parts."""
    robot, q, v = Robot.from_urdf(PENDULUM), np.array([0.7, 1.6]), np.zeros(2)
    free, J, b = np.array([1.2, 3.2]), np.array([[1.0, 0.6]]), np.array([1.5])
    row = CustomConstraint("row", 1, lambda *_: [0.0], jacobian=lambda *_: J, gamma=lambda *_: -b)
    M, h, *_ = constraint_system(robot, q, v, [row])
    tau = M @ free + h
    a = constrained_acceleration(robot, q, v, tau, [row]).a
    parts = null_space_method(M, J, tau - h, b)
    range_part = parts.Y @ parts.x_y
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*(a + np.outer((-5.0, 5.0), parts.Z[:, 0])).T, color=BLUE, lw=1.2)
    values, vectors = np.linalg.eigh(M)
    size = 2.0 * np.sqrt((a - free) @ M @ (a - free) / values)
    for scale in (0.4, 0.7, 1.0):
        angle = np.degrees(np.arctan2(*vectors[::-1, 0]))
        axes.add_patch(Ellipse(free, *(scale * size), angle=angle, fill=False, color=GREY, lw=0.8, ls="--"))
    for start, end, colour in ((np.zeros(2), range_part, GREEN), (range_part, a, BLUE), (free, a, RED)):
        arrow(axes, start, end, colour)
    axes.plot(*np.array([free, a]).T, "o", color="black", ms=4)
    label(axes, free, (6, 4), "a_free", "black")
    label(axes, a, (-14, 2), "a", "black")
    label(axes, range_part / 2, (-62, -36), "Y y, in the range of Jᵀ", GREEN)
    label(axes, (range_part + a) / 2, (10, 4), "Z z, with J Z = 0", BLUE)
    label(axes, (free + a) / 2, (8, -4), "M⁻¹ Jᵀ lam", RED)
    label(axes, (2.1, -1.0), (8, 0), "J a = −gamma", BLUE)
    axes.text(2.1, 5.4, "(a − a_free)ᵀ M (a − a_free)\nis constant", color=GREY, fontsize=9)
    plain(axes, "a₁", "a₂")
    axes.set(aspect="equal", xlim=(-1.9, 4.2), ylim=(-1.5, 6.5))
    return figure


def corner() -> Figure:
    """Draw Signorini's condition, and the two lines of one contact: it presses, or it opens."""
    figure = Figure(figsize=(5.4, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 0, 3], [3, 0, 0], color=BLUE, lw=4, solid_joinstyle="miter")
    inverse_mass, force = 0.8, np.array([-0.6, 3.0])
    for free, colour, what in ((-1.4, RED, "presses"), (1.2, GREEN, "opens")):
        axes.plot(inverse_mass * force + free, force, color=colour, lw=1.5)
        pressed = max(0.0, -free / inverse_mass)
        axes.plot(inverse_mass * pressed + free, pressed, "o", color=colour, zorder=5)
        axes.annotate(
            f"b {'<' if free < 0 else '>'} 0: {what}",
            (free, 0),
            (-6, -14),
            textcoords="offset points",
            color=colour,
            ha="right" if free < 0 else "left",
        )
        axes.plot(free, 0, "|", color=colour, ms=10)
    label(axes, (0, 1), (8, 0), "0 ≤ s  ⊥  lam ≥ 0", BLUE)
    label(axes, (-1.9, 1.0), (0, 0), "s = G lam + b", RED)
    plain(axes, "separation s", "force lam")
    axes.set(xlim=(-2.2, 3.2), ylim=(-0.7, 3.1))
    return figure


def nearest_in_cone(force: np.ndarray) -> np.ndarray:
    """Return the tangential and normal force that the natural map makes of `force`."""
    normal = max(0.0, force[1])
    return np.array([np.clip(force[0], -FRICTION * normal, FRICTION * normal), normal])


def cone() -> Figure:
    """Draw the friction cone with three points, and what the natural map makes of them."""
    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.fill([0, -3 * FRICTION, 3 * FRICTION], [0, 3, 3], color=BLUE, alpha=0.15, lw=0)
    axes.plot([-3 * FRICTION, 0, 3 * FRICTION], [3, 0, 3], color=BLUE)
    for point, colour, what in (
        ((0.5, 2.2), GREEN, "sticks"),
        ((2.6, 1.8), RED, "slides"),
        ((-1.1, -0.6), GREY, "open"),
    ):
        result = nearest_in_cone(np.array(point))
        if what != "sticks":
            arrow(axes, point, result, colour)
        axes.plot(*point, "o", color=colour, mfc="white")
        axes.plot(*result, "o", color=colour, zorder=5)
        axes.annotate(what, point, (8, 2) if point[1] > 0 else (-30, -12), textcoords="offset points", color=colour)
    level = nearest_in_cone(np.array([2.6, 1.8]))
    arrow(axes, level, level - (0.9, 0), "black")
    axes.annotate("slip", level - (0.9, 0), (-4, 4), textcoords="offset points", ha="right")
    axes.text(-1.35, 2.55, "|r_t| ≤ mu r_n", color=BLUE)
    axes.text(2.75, 0.9, "○  r − p u\n●  r", color="black")
    plain(axes, "r_t", "r_n")
    axes.set(aspect="equal", xlim=(-2.2, 3.8), ylim=(-0.9, 3.05))
    return figure


def errors(name: str) -> np.ndarray:
    """Return the error of the angles [rad] after DURATION, for each of COUNTS steps."""
    robot, start = Robot.from_urdf(PENDULUM), {"q": np.array([0.7, 0.9]), "v": np.array([1.0, -2.0])}
    exact = Simulator(robot, [], stepper="event_driven", dt=DURATION, **start)
    exact.step(np.zeros(2))
    stepper = STEPPERS[name][0]
    choice = {"stepper": stepper} | ({"integrator": name} if stepper == "smooth" else {})
    found = []
    for count in COUNTS:
        sim = Simulator(robot, [], dt=DURATION / count, **choice, **start)
        sim.run(DURATION, lambda t, q, v: np.zeros(2))
        found.append(np.abs(sim.state.q - exact.state.q).max())
    return np.array(found)


def orders() -> Figure:
    """Draw the error of the steppers over their step, and the slopes of their orders."""
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    steps = DURATION / np.array(COUNTS)
    for (name, (_, order)), marker in zip(STEPPERS.items(), "osv^Dx", strict=True):
        rounded = [float(f"{error:.2e}") for error in errors(name)]
        axes.loglog(steps, rounded, marker=marker, ms=5, lw=1, label=f"{name}, order {order}")
    for order, height in ((1, 2.2e-1), (2, 2.5e-3), (4, 8e-6)):
        line = height * (steps[[0, 3]] / steps[0]) ** order
        axes.loglog(steps[[0, 3]], line, color=GREY, lw=0.8, ls="--")
        label(axes, (steps[3], line[1]), (-44, -3), f"slope {order}", GREY)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="dt [s]", ylabel=f"error after {DURATION} s [rad]")
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(1.0, 0.0))
    axes.grid(alpha=0.3)
    return figure


def draw(make: Callable[[], Figure]) -> str:
    """Return a picture as SVG, the same text each time."""
    text = StringIO()
    with rc_context(STYLE):
        make().savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


PICTURES: dict[str, Callable[[], str]] = {
    f"{make.__name__}.svg": partial(draw, make) for make in (spaces, corner, cone, orders)
}
