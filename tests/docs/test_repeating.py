"""The program of docs/how-to/clients.md that repeats, with answers that a live cluster gives only now and then."""

import os
import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import httpx
import pytest

from tests.docs.pages import ROOT, blocks_of

NAME = "docs/how-to/clients.md"


class Enqueued:
    """Stands for the generated model."""


class Client:
    """Stands for the generated client."""

    def __init__(self, url: str, **_: object) -> None:
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


class Replicas:
    """Give one answer after the other: a status, with Retry-After if given, or an error."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str | None] | Exception] = []
        self.keys: list[str] = []
        self.waited_s: list[float] = []

    def sync_detailed(self, name: str, *, idempotency_key: str, **_: object) -> Any:
        """As the generated function."""
        self.keys.append(idempotency_key)
        answer = self.answers.pop(0) if self.answers else (200, None)
        if isinstance(answer, Exception):
            raise answer
        status, wait = answer
        headers = httpx.Headers({} if wait is None else {"Retry-After": wait})
        parsed = Enqueued() if status == 200 else SimpleNamespace(status=status)
        return SimpleNamespace(status_code=status, headers=headers, parsed=parsed)


@pytest.fixture
def replicas() -> Replicas:
    return Replicas()


@pytest.fixture
def enqueue_once(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The function of the page; what its program does besides has been done."""
    page = (ROOT / NAME).read_text()
    [program] = [block.text for block in blocks_of(NAME, page) if "def enqueue_once" in block.text]
    parts: dict[str, dict[str, Any]] = {
        "quorate_client": {"AuthenticatedClient": Client},
        "quorate_client.api": {},
        "quorate_client.api.queues": {"enqueue": replicas},
        "quorate_client.models": {"Enqueued": Enqueued, "OneItem": SimpleNamespace},
    }
    for name, members in parts.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(os.environ, "QUORATE_TOKEN", "change-me")
    monkeypatch.setattr(time, "sleep", replicas.waited_s.append)
    made: dict[str, Any] = {}
    exec(compile(program, NAME, "exec"), made)  # noqa: S102
    replicas.keys.clear()
    function: Callable[..., None] = made["enqueue_once"]
    return function


def test_who_is_asked_to_come_later_does_with_the_same_key(
    replicas: Replicas, enqueue_once: Callable[..., None]
) -> None:
    replicas.answers = [
        (429, "7"),
        (408, None),
        (409, None),
        (503, "1"),
        httpx.ConnectError("refused"),
        (200, None),
    ]
    enqueue_once("jobs", "surely")
    assert replicas.waited_s == [7.0, 0.2, 0.2, 1.0]
    assert len(replicas.keys) == 6
    assert len(set(replicas.keys)) == 1


def test_a_mistake_is_not_repeated(replicas: Replicas, enqueue_once: Callable[..., None]) -> None:
    replicas.answers = [(422, None)]
    with pytest.raises(ValueError, match="422"):
        enqueue_once("jobs", "surely")
    assert len(replicas.keys) == 1
