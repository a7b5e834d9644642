"""Sender and replica talk where they have a version of the replica protocol in common, and say so where they have none."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import PROTOCOL_HEADER, Batch, BatchReply, Collect, Protocols
from quorate.client_sdk.errors import QuorateError, RefusedByReplicas
from quorate.client_sdk.transport import http1
from quorate.replica.api.protocol_api import ANNOUNCEMENT_PATH, FORWARD_PATH, PATH
from quorate.replica.service.configured import Configured
from tests.support.in_process import in_process

PATHS = (PATH, FORWARD_PATH, ANNOUNCEMENT_PATH)


async def posted(client: httpx.AsyncClient, path: str, versions: str | None) -> dict[str, Any]:
    """The problem that a message meets which no version of the protocol has."""
    headers = {} if versions is None else {PROTOCOL_HEADER: versions}
    answer = await client.post(path, json={"unheard": "of"}, headers=headers)
    told: dict[str, Any] = answer.json()
    return told


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("versions", [None, "1", "2", "1-2", "2-7"])
async def test_with_a_common_version_the_message_is_read(
    client: httpx.AsyncClient, path: str, versions: str | None
) -> None:
    assert (await posted(client, path, versions))["type"] == "/problems/malformed"


@pytest.mark.parametrize("path", PATHS)
async def test_without_one_it_is_refused_unread(client: httpx.AsyncClient, path: str) -> None:
    told = await posted(client, path, "3-4")
    assert (told["type"], told["status"], told["definite"]) == ("/problems/other-protocol", 409, True)
    assert told["detail"] == (
        "the sender speaks versions 3-4 of the replica protocol, and replica r1 versions 1-2: update replica r1 to a release that speaks version 3"
    )


@pytest.mark.parametrize("path", PATHS)
async def test_a_header_out_of_form_is_malformed(client: httpx.AsyncClient, path: str) -> None:
    told = await posted(client, path, "latest")
    assert told["type"] == "/problems/malformed"
    assert (
        "Quorate-Protocol: must be the oldest and the newest version that is spoken, as 1-2" in told["detail"]
    )


async def test_who_does_not_say_speaks_the_first_version(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    batch = msgspec.json.encode(Batch(document.hash, (Collect("queue/q"),)))
    answer = await client.post(PATH, content=batch)
    assert len(msgspec.json.decode(answer.content, type=BatchReply).replies) == 1


def test_a_front_end_that_no_replica_understands_hears_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process(tmp_path) as cluster:
        monkeypatch.setattr(http1, "SPOKEN", Protocols(3, 4))
        client = cluster.front_end().client
        with pytest.raises(
            RefusedByReplicas, match=r"update replica r. to a release that speaks version 3"
        ) as caught:
            cluster.run(client.queue("jobs").enqueue("x"))
        assert caught.value.definite


def test_a_replica_that_does_not_understand_holds_up_nobody_while_others_are_a_quorum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def protocols(self: Configured) -> Protocols:
        return Protocols(3, 4) if self._own == "r3" else Protocols(1, 2)

    with in_process(tmp_path) as cluster:
        monkeypatch.setattr(http1, "SPOKEN", Protocols(2, 2))
        monkeypatch.setattr(Configured, "protocols", property(protocols))
        client = cluster.front_end().client
        cluster.run(client.queue("jobs").enqueue("x"))
        assert cluster.run(client.queue("jobs").dequeue()) == "x"
        cluster.stop("r2")
        with pytest.raises(QuorateError, match="replica r3 versions 3-4: update the sender"):
            cluster.run(client.register("leader").read(deadline_s=1.0))
