"""Ballots: the total order of decisions on one object. Pure.

A ballot is a timestamp and a step, as text `TIMESTAMP/STEP` (8 hexadecimal digits), which sorts the same. The timestamp
names the owner and its term (a *promise* is made to it); the step counts the accepts of that term, so that two accepts
of one term which the network reorders cannot replace the newer summary by the older.
"""

import re
from typing import Final, NewType

from .timestamp import TIMESTAMP_PATTERN, ZERO, Timestamp

Ballot = NewType("Ballot", str)

STEP_MAX: Final = (1 << 32) - 1
BALLOT_PATTERN: Final = rf"{TIMESTAMP_PATTERN}/[0-9a-f]{{8}}"
_BALLOT = re.compile(BALLOT_PATTERN)


def make_ballot(term: Timestamp, step: int) -> Ballot:
    """The ballot of accept number `step` (0 for the promise itself) in the owner's `term`."""
    if not 0 <= step <= STEP_MAX:
        raise ValueError(f"step {step} is outside 0..{STEP_MAX}: take a new term")
    return Ballot(f"{term}/{step:08x}")


def parse_ballot(text: str) -> Ballot:
    """`text` as a ballot; ValueError when it is not the text form of one."""
    if not _BALLOT.fullmatch(text):
        raise ValueError(f"{text[:90]!r} is not a ballot: a timestamp, '/', 8 hex digits")
    return Ballot(text)


def term_of(ballot: Ballot) -> Timestamp:
    """The timestamp that names the owner's term."""
    return Timestamp(ballot[:-9])


def step_of(ballot: Ballot) -> int:
    """The number of the accept within the term."""
    return int(ballot[-8:], 16)


NO_BALLOT: Final = make_ballot(ZERO, 0)
"""Below every ballot: what an object nobody decided on has promised and accepted."""
