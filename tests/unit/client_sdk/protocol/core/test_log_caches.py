"""Which objects a front end remembers."""

import pytest

from quorate.client_sdk.protocol.core import log_caches
from quorate.client_sdk.protocol.core.log_caches import Mirrors


def test_the_object_idle_longest_is_forgotten_unless_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 2)
    mirrors = Mirrors(("r1",), forget=lambda name: name != "queue/kept")
    for name in ("queue/kept", "queue/idle", "queue/new"):
        mirrors.of(name)
    assert [mirrors.held(name) is not None for name in ("queue/kept", "queue/idle", "queue/new")] == [
        True,
        False,
        True,
    ]


def test_what_somebody_holds_stays_one_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_caches, "OBJECTS_MAX", 1)
    mirrors = Mirrors(("r1",), forget=lambda _: True)
    held = mirrors.of("queue/held")
    mirrors.of("queue/other")
    assert mirrors.of("queue/held") is held
