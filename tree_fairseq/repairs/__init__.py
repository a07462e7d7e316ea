"""Every change that the package makes to functions of fairseq, torch and Python: :data:`REPAIRS` lists them."""

from tree_fairseq.repairs.table import REPAIRS, Repair, apply

__all__ = ["REPAIRS", "Repair", "apply"]
