"""The command constrained_sim, as the tests of its commands run it."""

import io
import sys

import pytest

from constrained_sim.cli.app import main


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in an empty folder, in this process: it returns both streams."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0, given=""):
        monkeypatch.setattr(sys, "argv", ["constrained_sim", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as end:
            main()
        streams = capsys.readouterr()
        assert end.value.code == code, streams
        return streams

    return run
