"""Tree-structured transformers for fairseq: the plugin that ``--user-dir tree_fairseq`` imports.

Importing the package registers its tasks, models and criteria if the process has imported fairseq, as every fairseq
command has. Without fairseq the package imports next to nothing, so that ``tree_fairseq.trees`` and
``tree_fairseq.parsing`` work on their own.
"""

import sys
from pathlib import Path

__version__ = "0.1.0"
__all__ = ["__version__", "register"]


def register() -> None:
    """Registers tasks, models, criteria and scorers with fairseq; a second call does nothing.

    Raises VersionError if torch or fairseq is too old.
    """
    from tree_fairseq.repairs.fairseq_versions import require_versions

    require_versions()
    from tree_fairseq import plugin  # noqa: F401  importing it registers


if __name__ != "tree_fairseq":
    # --user-dir is a link of another name: the package itself lies beside the target of the link.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tree_fairseq.plugin import be_one_package

    be_one_package(__name__, __file__)
elif "fairseq" in sys.modules:
    register()
