"""Benchmarks: time and memory of the package, compared with alternatives that do the same work.

``python -m tests.benchmarks NAME`` measures. Nothing here is a test, and no figure can fail one.
"""
