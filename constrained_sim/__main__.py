"""``python -m constrained_sim``: the same as the command ``constrained_sim``."""

from constrained_sim.cli.app import main

if __name__ == "__main__":
    main()
