"""The entry for tools that ask for a setup.py; pyproject.toml has the facts.

The licence stands here because its form in pyproject.toml differs between versions of setuptools before and after 77.
"""

from setuptools import setup

setup(license="MIT")
