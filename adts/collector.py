"""Python's garbage collector, kept from looking while many small parts are made: with many arrays its search takes nine tenths of the
time, and finds nothing."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

COLLECTOR: Final = importlib.import_module("gc")
"""A statement would be read as the import of this project's room of that name."""


@contextmanager
def collector_off() -> Iterator[bool]:
    """Nobody looks for garbage within. Whether somebody did before: who finds it off leaves it off."""
    was_on = COLLECTOR.isenabled()
    COLLECTOR.disable()
    try:
        yield was_on
    finally:
        if was_on:
            COLLECTOR.enable()
