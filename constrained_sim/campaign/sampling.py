"""Sampling of the varied values of a study: one point for each run, the same on every machine."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import qmc

from constrained_sim.campaign.distributions import Distribution, Grid, Value
from constrained_sim.validation import Array


class Sampler(ABC):
    """Gives each run a point in the unit cube, an edge for each variation."""

    def __init__(self, names: tuple[str, ...], seed: int, runs: int) -> None:
        """Take the `names` of the variations, the `seed` of the study and the number of its `runs`."""
        self.names, self.seed, self.runs = names, seed, runs

    @abstractmethod
    def point(self, run: int) -> Array:
        """Return (d,) the point of a `run`, from 0 on."""


class Independent(Sampler):
    """Each run and each variation by itself: a variation that is added changes no other's values."""

    def point(self, run: int) -> Array:
        """Return (d,) the point of a `run`."""
        return np.array([generator(self.seed, run, name).random() for name in self.names])


class Sobol(Sampler):
    """The points of a scrambled Sobol sequence, which fill the cube evenly, however many there are."""

    def __init__(self, names: tuple[str, ...], seed: int, runs: int) -> None:
        """Begin the sequence."""
        super().__init__(names, seed, runs)
        self._engine = qmc.Sobol(max(1, len(names)), scramble=True, **_seeded(seed))

    def point(self, run: int) -> Array:
        """Return (d,) the point of a `run`; the next one takes no time, one before begins the sequence again."""
        if run < self._engine.num_generated:
            self._engine.reset()
        ahead = run - self._engine.num_generated
        if ahead:
            self._engine.fast_forward(ahead)
        return np.asarray(self._engine.random(1)[0, : len(self.names)])


class LatinHypercube(Sampler):
    """Of n runs one in each n-th part of every edge; holds the points of all runs."""

    def __init__(self, names: tuple[str, ...], seed: int, runs: int) -> None:
        """Draw all points."""
        super().__init__(names, seed, runs)
        self._points = qmc.LatinHypercube(max(1, len(names)), **_seeded(seed)).random(runs)

    def point(self, run: int) -> Array:
        """Return (d,) the point of a `run`, below the number of runs."""
        return np.asarray(self._points[run, : len(self.names)])


SAMPLERS: dict[str, type[Sampler]] = {
    "independent": Independent,
    "sobol": Sobol,
    "latin_hypercube": LatinHypercube,
}
"""Ways to choose the points, by the names that a study's file uses."""


def generator(seed: int, run: int, name: str = "") -> np.random.Generator:
    """Return the source of what is random in a `run`, by the `name` of what draws from it."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(run, *name.encode())))


class Draws:
    """Draws the values of each run from the distributions of a study."""

    def __init__(self, variations: Mapping[str, Distribution], sampling: str, seed: int, runs: int) -> None:
        """Prepare for `runs` runs; `sampling` is a name in :data:`SAMPLERS`."""
        self._grids = {name: kind for name, kind in variations.items() if isinstance(kind, Grid)}
        self._random = {name: kind for name, kind in variations.items() if not isinstance(kind, Grid)}
        self._sampler = SAMPLERS[sampling](tuple(self._random), seed, runs)
        self._order = tuple(variations)

    def values(self, run: int) -> dict[str, Value]:
        """Return the values of a `run`, by the key that varies."""
        found: dict[str, Value] = {}
        place = run
        for name, grid in reversed(self._grids.items()):
            place, at = divmod(place, len(grid.values))
            found[name] = grid.values[at]
        shares = self._sampler.point(run).tolist() if self._random else []
        for (name, kind), share in zip(self._random.items(), shares, strict=True):
            found[name] = kind.quantile(share)
        return {name: found[name] for name in self._order}


def _seeded(seed: int) -> dict[str, Any]:
    """Return the argument that seeds a sequence; SciPy 1.15 gave it another name."""
    name = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
    return {name: np.random.default_rng(np.random.SeedSequence(seed))}
