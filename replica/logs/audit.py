"""Audit lines: one for each administrative act, as one JSON object on one line.

Owns their form. An act is something that an operator does to a replica: start, stop, format, replace, another list of
tokens, another certificate. A replica logs its own by the logger `quorate.audit`; a command writes its own to standard
error, unless that is a terminal. Facts never hold a token, nor a digest of one.
"""

import logging
import os
from collections.abc import Mapping
from typing import Final

import msgspec

_log: Final = logging.getLogger("quorate.audit")

Fact = str | int | float | bool | None | list[str]


class Act:
    """An act and its facts, as a message of a log."""

    def __init__(self, act: str, facts: Mapping[str, Fact]) -> None:
        self.act: Final = act
        self.facts: Final = facts

    def __str__(self) -> str:
        return msgspec.json.encode({"act": self.act, **self.facts}).decode()


def audit(act: str, **facts: Fact) -> None:
    """Log the line of an act of this replica, as `{"act":"tokens-read","added":["shop"],"removed":[]}`."""
    _log.info(Act(act, facts))


def audit_line(act: str, **facts: Fact) -> str:
    """The line of an act of a command, with the number of the user who gave it."""
    return str(Act(act, {"uid": os.getuid(), **facts}))
