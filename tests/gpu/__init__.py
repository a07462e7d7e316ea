"""``python -m tests.gpu``: checks and measures the package on a GPU; ``make gpu`` starts it.

Each part runs in a process of its own with a limit of time. ``--device cpu --quick`` runs the same code without a GPU.
"""
