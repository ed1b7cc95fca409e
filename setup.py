"""Installs the Python package without ROS; everything is declared in pyproject.toml."""

from setuptools import setup

setup()
