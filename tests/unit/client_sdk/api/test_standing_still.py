"""A caller's process that stands still between what it sends and the answers, as a suspended machine or a long collection of garbage makes it."""

from collections.abc import Callable, Coroutine, Hashable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from quorate.api_specs.messages import Append, Appended, Batch, BatchReply
from quorate.client_sdk.api.client import AsyncClient
from quorate.client_sdk.transport.link import Link
from quorate.replica.service.member import Member
from quorate.replica.store.group_commit import Done
from tests.support.in_process import InProcessCluster, in_process

STILL_S = 3.0
"""Longer than a stamp may be behind a replica's clock."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("still")) as made:
        yield made


def write(client: AsyncClient, value: int) -> Coroutine[Any, Any, Any]:
    return client.register("held-up").write(value)


def enqueue(client: AsyncClient, value: int) -> Coroutine[Any, Any, Any]:
    return client.queue("held-up").enqueue(value)


def put(client: AsyncClient, value: int) -> Coroutine[Any, Any, Any]:
    return client.dictionary("held-up").put("key", value)


@pytest.mark.parametrize("store", [write, enqueue, put])
def test_what_was_stamped_before_is_stored_by_who_is_asked_late(
    store: Callable[[AsyncClient, int], Coroutine[Any, Any, Any]],
    cluster: InProcessCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of the two replicas that are asked first is silent, and the process stands still before it asks the third: to that one the stamp is old, though
    no clock is wrong."""
    client = cluster.front_end().client
    # They may be lost at any time; here nothing else goes to the third one with what is stored.
    monkeypatch.setattr(Link, "_put_lazy", lambda *_: None)
    for value in range(2):  # All are known then, and a quorum is asked first.
        cluster.run(store(client, value))
    held_up = HeldUp(cluster)
    for replica in cluster.up:
        member = cluster.member(replica)
        monkeypatch.setattr(member, "post", held_up.post_of(member))
    try:
        cluster.run(store(client, 2))
        assert len(held_up.stored) == 2
    finally:
        cluster.run(held_up.end())


class HeldUp:
    """The first replica that is asked to store something says nothing until the end; when the next one has stored it, time has gone on."""

    def __init__(self, cluster: InProcessCluster) -> None:
        self._cluster: Final = cluster
        self._silent = ""
        self._unsaid: Final[list[Callable[[], None]]] = []
        self.stored: Final[set[str]] = set()

    async def end(self) -> None:
        """The silent one does what it was asked."""
        for say in self._unsaid:
            say()

    def post_of(self, member: Member) -> Callable[..., None]:
        """What the replica does with a batch."""
        really = member.post

        def post(batch: Batch, done: Done, is_wanted: Callable[[], bool], caller: Hashable = None) -> None:
            if not any(isinstance(each, Append) for each in batch.requests):
                really(batch, done, is_wanted, caller)
                return
            self._silent = self._silent or member.id
            if member.id == self._silent:
                self._unsaid.append(partial(really, batch, done, is_wanted, caller))
                return
            really(batch, partial(self._note, member.id, done), is_wanted, caller)

        return post

    def _note(self, replica: str, done: Done, reply: BatchReply | None, error: Exception | None) -> None:
        if not self.stored:
            self._cluster.clock.leap(STILL_S)
        if reply is not None and any(isinstance(each, Appended) for each in reply.replies):
            self.stored.add(replica)
        done(reply, error)
