"""``python -m constrained_sim``, and the command ``constrained_sim``."""

import sys

from constrained_sim.cli import INTERRUPTED


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line, also while Python still imports what it needs."""
    try:
        from constrained_sim.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("constrained_sim: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
