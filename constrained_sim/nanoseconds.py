"""Time in whole nanoseconds, which stamps are in: integers add up without rounding."""

from __future__ import annotations

from constrained_sim.exceptions import InvalidValue
from constrained_sim.validation import number

NANOSECONDS = 1_000_000_000
"""In a second."""

ROUNDING = 1e-6
"""[ns] Error up to which a time is a whole number of nanoseconds: seconds are rounded."""


def nanoseconds_of(seconds: float) -> int:
    """Return the number of nanoseconds that is nearest to a time in `seconds`."""
    return round(seconds * NANOSECONDS)


def seconds_of(nanoseconds: int) -> float:
    """Return a time in `nanoseconds` as seconds: 7 ms are 0.007, where a product with 1e-9 would be rounded twice."""
    return nanoseconds / NANOSECONDS


def whole_nanoseconds(what: str, seconds: float) -> int:
    """Return `seconds` in nanoseconds.

    Raises:
        InvalidValue: not positive, or not whole.
    """
    nanoseconds = nanoseconds_of(number(what, seconds, 0.0, open_lower=True))
    if nanoseconds < 1 or abs(nanoseconds - seconds * NANOSECONDS) > ROUNDING:
        raise InvalidValue(what, seconds, "a whole number of nanoseconds, in seconds")
    return nanoseconds


def control_steps(control_period: float, dt: float) -> int:
    """Return the number of physics steps in a control period; 0 s means one.

    Raises:
        InvalidValue: the period is not a whole multiple of dt.
    """
    if control_period == 0.0:
        return 1
    count, remainder = divmod(whole_nanoseconds("control_period", control_period), whole_nanoseconds("dt", dt))
    if remainder or not count:
        raise InvalidValue("control_period", control_period, f"a whole multiple of dt = {dt}")
    return count
