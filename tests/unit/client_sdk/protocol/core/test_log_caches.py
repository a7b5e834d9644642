"""Which objects a front end remembers."""

import pytest

from quorate.client_sdk.protocol.core import log_caches
from quorate.client_sdk.protocol.core.log_caches import LogCaches


def test_the_object_idle_longest_is_forgotten_unless_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 2)
    caches = LogCaches(("r1",), forget=lambda name: name != "queue/kept")
    for name in ("queue/kept", "queue/idle", "queue/new"):
        caches.of(name)
    assert [caches.held(name) is not None for name in ("queue/kept", "queue/idle", "queue/new")] == [
        True,
        False,
        True,
    ]


def test_what_somebody_holds_stays_one_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 1)
    caches = LogCaches(("r1",), forget=lambda _: True)
    held = caches.of("queue/held")
    caches.of("queue/other")
    assert caches.of("queue/held") is held
