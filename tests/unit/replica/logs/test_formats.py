"""The form of a replica's log: one record on one line, as text and as JSON. `tests/system/watching/test_logged.py` has processes."""

import json
import logging
import re

import pytest

from quorate.replica.logs.audit import Act
from quorate.replica.logs.formats import JsonLines, TextLines


def record_of(message: object, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    """A record as `logging` makes it."""
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("quorate.x", logging.ERROR, __file__, 1, message, arguments, exc_info)


def caught() -> ValueError:
    """An error of several lines, with its trace."""
    try:
        raise ValueError("one\ntwo")
    except ValueError as error:
        return error


@pytest.mark.parametrize("form", [TextLines("r1"), JsonLines("r1")])
def test_record_is_one_line_whatever_is_in_it(form: logging.Formatter) -> None:
    for record in (record_of("a\nb\r\nc"), record_of("%s", "\udc80"), record_of("failed", error=caught())):
        assert len(form.format(record).splitlines()) == 1


def test_text_has_time_level_replica_and_module() -> None:
    line = TextLines("r1").format(record_of("failed: %s", "why", error=caught()))
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ERROR replica=r1 quorate.x: failed: why", line)
    assert r"\nTraceback (most recent call last):\n" in line
    assert r"ValueError: one\ntwo" in line


def test_json_has_the_same_as_members() -> None:
    line = json.loads(JsonLines("r1").format(record_of("failed: %s", "why", error=caught())))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line.pop("exception").endswith("ValueError: one\ntwo")
    assert line == {"level": "ERROR", "logger": "quorate.x", "replica": "r1", "message": "failed: why"}


def test_act_keeps_its_facts() -> None:
    record = record_of(Act("tokens-read", {"valid": 2, "added": ["shop"]}))
    line = json.loads(JsonLines("r1").format(record))
    assert (line["message"], line["fields"]) == ("tokens-read", {"valid": 2, "added": ["shop"]})
    assert (
        TextLines("r1").format(record).endswith('quorate.x: {"act":"tokens-read","valid":2,"added":["shop"]}')
    )
