"""Quorate: replicated abstract data types by quorum consensus.

Each folder beside this file that has an `__init__.py` is a room of the package `quorate`, but for `tests` and `benchmarks`.
`ARCHITECTURE.md` says what is in which room.
"""

from typing import Final

__version__: Final = "0.1.0"
