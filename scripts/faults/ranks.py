"""Faults of one of two ranks."""


def rows(bench):
    return []
