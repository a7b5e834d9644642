"""Metrics and events that pages name are there: an alarm on a name that is not would never go off."""

import re
from itertools import product
from pathlib import Path

from quorate.replica.telemetry.metric_table import EVENTS, METRICS, OF_QUEUES, PROCESS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = "\n".join(page.read_text() for page in PAGES)
OTHERS = {"quorate_client", "quorate_report"}
"""Names of a generated package and of a folder."""
NAMED = re.compile(r"\bquorate_[a-z0-9_]+\b")
EVENT = re.compile(r'event=~?"([^"]+)"')


def known(name: str) -> bool:
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return name in METRICS or base in METRICS or name in OF_QUEUES or name in PROCESS


def meant(pattern: str) -> list[str]:
    """The events that a label matches: `a-(b|c)` are two. A table's cell escapes the bar."""
    parts = re.split(r"\(([^)]*)\)", pattern.replace("\\|", "|"))
    choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(each) for each in product(*choices)]


def test_every_metric_that_a_page_names_is_there() -> None:
    named = set(NAMED.findall(TEXT)) - OTHERS
    assert len(named) > 30
    assert sorted(name for name in named if not known(name)) == []


def test_every_event_that_a_page_names_is_counted() -> None:
    events = {event.replace(" ", "-") for event in EVENTS}
    named = [event for pattern in EVENT.findall(TEXT) for event in meant(pattern)]
    assert len(named) >= 3
    assert [event for event in named if event not in events] == []
