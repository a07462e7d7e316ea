"""Benchmarks: what the package costs beside what stands in its place.

``python -m tests.benchmarks NAME`` measures; nothing here is a test, and no figure can fail one.
"""
