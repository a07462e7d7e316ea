"""Registered tasks, one a file."""
