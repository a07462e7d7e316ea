"""Installs the plugin into an environment that already has fairseq: ``pip install .``

torch and fairseq are no requirements here on purpose: pip would otherwise try to build fairseq, or replace a torch that
was chosen with care. ``make`` builds a whole environment from requirements.lock instead.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent


def pinned(*names: str) -> list[str]:
    """The lines of requirements.lock for ``names``, as minimum versions: the extras follow the lock."""
    lock = dict(
        re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    return [f"{name}>={lock[name]}" for name in names]


def version() -> str:
    """The package's version, read and not imported: importing the package needs fairseq."""
    return re.search(
        r'^__version__ = "(.+)"$', (ROOT / "tree_fairseq/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    ).group(1)


EXTRAS = {
    "pretrained": pinned("transformers"),
    "stanza": pinned("stanza"),
    "summarization": pinned("rouge-score"),
    "subwords": pinned("sacremoses", "sentencepiece", "subword-nmt"),
    "test": pinned("hypothesis", "mypy", "nltk", "pytest", "pytest-xdist", "ruff"),
}

setup(
    name="tree-fairseq",
    version=version(),
    description="Trees in fairseq: parsing, preprocessing, and models that read and write trees",
    license="MIT",
    python_requires=">=3.11",
    packages=find_packages(include=["tree_fairseq", "tree_fairseq.*"]),
    package_data={"tree_fairseq": ["py.typed"]},
    entry_points={"console_scripts": ["tree-fairseq = tree_fairseq.__main__:main"]},
    install_requires=["numpy", "sacrebleu", "scikit-learn", "scipy", "tqdm"],
    extras_require={**EXTRAS, "all": sorted({requirement for group in EXTRAS.values() for requirement in group})},
)
