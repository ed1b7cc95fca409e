"""`constrained_sim list`: the names that parameter files and other commands take."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from constrained_sim.cli.texts import Json, write_json


class Kind(StrEnum):
    """What can be listed."""

    robots = "robots"
    solvers = "solvers"
    factorizations = "factorizations"
    contact_methods = "contact_methods"
    steppers = "steppers"
    laws = "laws"
    constraints = "constraints"
    integrators = "integrators"
    sensors = "sensors"


FACTORIZATIONS = {
    "lu": "LU with partial pivoting. The default.",
    "qr_pivoting": "Householder QR with pivoted columns.",
    "qr": "Householder QR.",
    "ldlt": "L D L^T by Bunch and Kaufman, of the symmetric form.",
}
"""What is said about members of those of the solver ``direct``."""


def list_command(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Json = False,
) -> None:
    """List robots of the package with what their controllers do, or the members of another family.

    Factorizations are those of the solver `direct`.

    Examples:
        $ constrained_sim list robots

        $ constrained_sim list solvers --json
    """
    entries = described(kind)
    if as_json:
        write_json({kind.value: entries})
        return
    for name, facts in entries.items():
        print(f"{name:16} {facts.pop('about', '')}".rstrip())
        for key, value in facts.items():
            print(f"{'':16} {key}: {', '.join(value) if isinstance(value, list) else value}")


def described(kind: Kind) -> dict[str, dict[str, Any]]:
    """Return what is known about each member of a kind, by name."""
    if kind is Kind.robots:
        from constrained_sim.controllers import CONTROLLERS
        from constrained_sim.shipped import shipped_robots

        return {
            name: {"about": _comment(file), "controllers": list(CONTROLLERS[name].MODES), "file": str(file)}
            for name, file in shipped_robots().items()
        }
    if kind is Kind.contact_methods:
        from constrained_sim.contact_solvers import METHODS

        return {name: {"about": method.about} for name, method in METHODS.items()}
    if kind is Kind.factorizations:
        from constrained_sim.solvers.direct import FACTORIZATIONS as KNOWN

        return {name: {"about": FACTORIZATIONS.get(name, "")} for name in KNOWN}
    import constrained_sim

    registry = getattr(constrained_sim, kind.value.upper())
    return {name: {"about": _first_line(member)} for name, member in registry.items()}


def _comment(file: Any) -> str:
    """Return the first sentence of the comment at the beginning of a parameter file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comment = " ".join(line.removeprefix("#").strip() for line in lines[: lines.index("/**:")])
    return f"{comment.split('. ')[0].rstrip('.')}."


def _first_line(member: Any) -> str:
    """Return the first line of what a class or function says about itself."""
    return next(iter((member.__doc__ or "").strip().splitlines()), "")
