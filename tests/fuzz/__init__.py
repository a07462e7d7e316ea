"""Fuzzing of all that reads what others wrote.

A target is a function of bytes. Its law: a value whose written form reads back equal, or a ``TreeFairseqError``; no
other exception, no more than two seconds of processor time, no more than a gigabyte. `law` holds the law, and the
modules ``*_targets`` have the targets. ``make fuzz SECONDS=60`` runs them all, guided by coverage.
"""
