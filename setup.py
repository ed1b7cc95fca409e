"""Installs the Python package without ROS; all but the place of its files is declared in pyproject.toml.

A wheel carries the folders config, docs/why, msg and urdf, which a ROS installation puts into share/constrained_sim,
inside the Python package: ``constrained_sim.shipped`` finds them in either place.
"""

from setuptools import find_packages, setup

FOLDERS = {
    f"constrained_sim.share.{folder.replace('/', '.')}": folder for folder in ("config", "docs/why", "msg", "urdf")
}

setup(
    packages=[*find_packages(include=["constrained_sim", "constrained_sim.*"]), *FOLDERS],
    package_dir=FOLDERS,
    package_data={
        "constrained_sim.ros": ["*.xml"],
        "": ["*.yaml", "*.urdf"],
        "constrained_sim.share.docs.why": ["*.md"],
        "constrained_sim.share.msg": ["*.msg"],
        "constrained_sim.share.config": ["*.rviz", "*.json", "*.xml"],
    },
)
