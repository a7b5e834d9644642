"""Audit lines: one for each administrative act, as one JSON object on one line of the log, by the logger `quorate.audit`.

Owns their form. An act is something that an operator does to a replica: start, stop, format, replace, another list of
tokens, another certificate. Facts never hold a token, nor a digest of one.
"""

import logging
from typing import Final

import msgspec

_log: Final = logging.getLogger("quorate.audit")

Fact = str | int | float | bool | None | list[str]


def audit(act: str, **facts: Fact) -> None:
    """Write the line of an act, as `{"act":"tokens-changed","added":["shop"],"removed":[]}`."""
    _log.info("%s", msgspec.json.encode({"act": act, **facts}).decode())
