"""A long training that is killed, starved of its loading processes and of disk again and again, beside an unbroken one.

See :mod:`tests.soak.soak` for the course of events.
"""
