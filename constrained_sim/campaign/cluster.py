"""Dask does the runs of a study: an embedded cluster of this machine, or one that is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

from constrained_sim.campaign.leftovers import end_orphans
from constrained_sim.campaign.process import end_processes
from constrained_sim.compilation.python_process import processors
from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional

CONNECTING_TIME = 20.0
"""[s] that a scheduler may take to answer."""


LOOPBACK = "127.0.0.1"
"""Where an embedded cluster serves its pages; Dask by itself would serve them to everybody."""


class Cluster(NamedTuple):
    """A cluster that is in use.

    Attributes:
        executor: does runs.
        workers: how many it does at once.
        dashboard: address of Dask's page; empty: none.
    """

    executor: Executor
    workers: int
    dashboard: str


@contextmanager
def dask_cluster(scheduler: str = "", workers: int | None = None, dashboard: bool = False) -> Iterator[Cluster]:
    """Use a Dask cluster for a while.

    Without `scheduler` it is embedded in this process, with a thread for each worker, which waits for the process that
    does the runs: one process a core. The workers of another scheduler need this package and the study's files.

    Args:
        scheduler: address, as ``tcp://192.168.0.1:8786``; empty: an embedded cluster.
        workers: of an embedded cluster; None: as many as there are processors.
        dashboard: serve Dask's page of an embedded cluster, on this machine only.

    Raises:
        MissingLibrary: Dask.
        ConfigError: no scheduler answers, or it has no workers.
    """
    distributed = optional("distributed", "studies")
    if dashboard:
        optional("bokeh", "Dask's page")
    end_orphans()
    with contextlib.ExitStack() as stack:
        if scheduler:
            client = stack.enter_context(_connected(distributed, scheduler))
        else:
            cluster = stack.enter_context(_embedded(distributed, workers or processors()))
            client = stack.enter_context(distributed.Client(cluster))
        count = sum(client.nthreads().values())
        if not count:
            raise ConfigError(f"the scheduler at {scheduler!r} has no workers, allowed: one worker or more")
        page = client.dashboard_link if scheduler else _own_page(client) if dashboard else ""
        yield Cluster(client.get_executor(pure=False), count, page)


def _connected(distributed: Any, scheduler: str) -> Any:
    """Return a client of the cluster with this scheduler.

    Raises:
        ConfigError: none answers.
    """
    try:
        return distributed.Client(scheduler, timeout=CONNECTING_TIME)
    except (OSError, ValueError) as error:
        raise ConfigError(f"scheduler: nothing answers at {scheduler!r} ({error})") from error


def _embedded(distributed: Any, workers: int) -> Any:
    """Return a cluster in this process."""
    return distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=workers,
        processes=False,
        memory_limit=0,  # the runs' own processes have a limit
        dashboard_address=f"{LOOPBACK}:0",
        worker_dashboard_address=f"{LOOPBACK}:0",
        silence_logs=40,
    )


def _own_page(client: Any) -> str:
    """Return the address of an embedded cluster's page; Dask itself names another host."""
    return f"http://{LOOPBACK}:{client.scheduler_info()['services']['dashboard']}/status"


def client_of(executor: Executor | None) -> Any:
    """Return Dask's client behind an executor; None: it is not Dask's."""
    return executor._client if type(executor).__module__.startswith("distributed.") else None  # type: ignore[union-attr]


def end_on_workers(executor: Executor | None, work: str) -> None:
    """End the processes that do this `work` on all workers of Dask, where these still answer."""
    client = client_of(executor)
    if client is not None and client.status == "running":  # else its workers end by themselves
        with contextlib.suppress(Exception):
            client.run(end_processes, work)
