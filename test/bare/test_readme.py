"""Every Python block of the README runs as it stands, far from the sources, with nothing but what is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
PYTHON = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
BLOCKS = [block for block in PYTHON if "import rclpy" not in block]
"""Without nodes, which test/ros runs."""


def run(folder, *words):
    """Run Python in `folder`, which is not on its path; return what it printed."""
    done = subprocess.run([sys.executable, "-P", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_block(block, tmp_path):
    """A block with tests is a module of which at least one passes (that over DDS needs ROS); others are scripts."""
    (tmp_path / "test_block.py").write_text(BLOCKS[block])
    if "def test_" not in BLOCKS[block]:
        assert run(tmp_path, "test_block.py").strip()
        return
    printed = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_block.py")
    assert re.search(r"\b[1-9]\d* passed", printed)


def test_the_leg_of_the_first_block_carries_its_weight(tmp_path):
    """The force at the end is m g = 2.5 kg * 9.81 m/s^2, vertical."""
    (first,) = [block for block in BLOCKS if "touchdown.t" in block]
    (tmp_path / "first.py").write_text(first)
    force = [float(word) for word in re.findall(r"[-+.\de]+", run(tmp_path, "first.py").splitlines()[0])]
    assert force == pytest.approx([force[0], 0.0, 2.5 * 9.81], abs=1e-3)
    assert abs(force[0]) < 0.8 * force[2]
