"""The simulator of the package as the live tests run it: its files, and its command line."""

import contextlib
from pathlib import Path

from lifecycle_msgs.srv import GetState

from constrained_sim.exceptions import NoAnswer
from constrained_sim.testing import ros
from constrained_sim.testing.ros import Client, free_domain, nanoseconds, package_executable, stamp
from constrained_sim.testing.ros.client import NODE

__all__ = [
    "CONFIG",
    "NODE",
    "PERIOD",
    "ROOT",
    "START_TIME",
    "URDF",
    "Client",
    "Process",
    "arguments",
    "dotted",
    "free_domain",
    "lifecycle_state",
    "nanoseconds",
    "stamp",
]

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config" / "leg.yaml"
URDF = ROOT / "urdf" / "leg.urdf"
START_TIME = 1.0
PERIOD = 1_000_000
"""[ns] control period of leg.yaml."""


ANSWER_TIME = 5.0
"""[s] after which a request that changes nothing is sent again."""


def dotted(parameters):
    """Return parameters by their names; two underscores in a keyword stand for a dot."""
    return {name.replace("__", "."): value for name, value in parameters.items()}


def arguments(config=CONFIG, **parameters):
    """Return the command line of the simulator."""
    return ros.arguments(config, dotted(parameters))


class Process(ros.Process):
    """An installed executable of the package."""

    def __init__(self, folder, domain, executable, *words):
        """Start it; its output goes to files in `folder`."""
        super().__init__(folder, domain, [package_executable(executable), *words])


def lifecycle_state(client):
    """Return the number of the state that the node is in as a managed one; the node knows the client then.

    Its first answer is lost where it has not discovered the client yet, see SETTLE of the client.
    """

    def asked():
        with contextlib.suppress(NoAnswer):
            return client.call(GetState, f"{NODE}/get_state", ANSWER_TIME).current_state

    return client.wait_for(asked, "state of the node", 60.0).id
