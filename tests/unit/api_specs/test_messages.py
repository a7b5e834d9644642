"""Messages: what is sent is what arrives, in both encodings, and what no front end sends is refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from quorate.api_specs.messages import (
    Batch,
    BatchReply,
    Protocols,
    Request,
    protocols_in,
    why_not_spoken,
)
from tests.unit.api_specs.strategies import values_of

CODECS: dict[str, tuple[Any, Any]] = {
    "json": (msgspec.json.encode, msgspec.json.decode),
    "msgpack": (msgspec.msgpack.encode, msgspec.msgpack.decode),
}
MODEST = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("codec", CODECS)
@MODEST
@given(values_of(Batch))
def test_a_batch_arrives_as_it_was_sent(codec: str, batch: Batch) -> None:
    encode, decode = CODECS[codec]
    assert decode(encode(batch), type=Batch) == batch


@pytest.mark.parametrize("codec", CODECS)
@MODEST
@given(values_of(BatchReply))
def test_a_reply_arrives_as_it_was_sent(codec: str, reply: BatchReply) -> None:
    encode, decode = CODECS[codec]
    assert decode(encode(reply), type=BatchReply) == reply


SIMPLEST: dict[str, dict[str, Any]] = {
    "append": {"object": "queue/q", "entries": []},
    "collect": {"object": "queue/q"},
    "accept": {"object": "queue/q", "ballot": "b", "summary": {}},
    "commit": {"object": "queue/q"},
    "scan": {"prefix": ""},
    "changes": {"since": 0, "upto": 0},
    "reserve": {"object": "queue/q", "ballot": "b", "proposals": []},
}


def batch_with(request: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"cluster": "c", "requests": [request]})


def test_the_simplest_requests_are_those_there_are() -> None:
    for tag, fields in SIMPLEST.items():
        batch = msgspec.json.decode(batch_with({"type": tag, **fields}), type=Batch)
        assert type(batch.requests[0]).__name__.lower() == tag
    assert len(SIMPLEST) == len(Request.__args__)


@pytest.mark.parametrize("tag", SIMPLEST)
def test_a_request_with_an_unknown_field_is_refused(tag: str) -> None:
    """What a newer front end means by it must not be lost in silence."""
    with pytest.raises(msgspec.ValidationError, match="unknown field `surprise`"):
        msgspec.json.decode(batch_with({"type": tag, **SIMPLEST[tag], "surprise": 1}), type=Batch)


@pytest.mark.parametrize("tag", SIMPLEST)
def test_a_request_without_one_of_its_fields_is_refused(tag: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="missing required field"):
        msgspec.json.decode(batch_with({"type": tag}), type=Batch)


def test_a_request_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="Invalid value 'steal'"):
        msgspec.json.decode(batch_with({"type": "steal", "object": "queue/q"}), type=Batch)


def test_a_reply_may_say_more_than_is_known_here() -> None:
    """A newer replica may add to its replies; an older front end reads what it knows."""
    text = b'{"replica":"r1","incarnation":"i","clock":"t","now_us":1,"replies":[],"surprise":1}'
    assert msgspec.json.decode(text, type=BatchReply).replica == "r1"


def test_what_is_left_out_takes_no_room() -> None:
    assert msgspec.json.encode(
        msgspec.json.decode(batch_with({"type": "collect", "object": "q"}), type=Batch)
    ) == (b'{"cluster":"c","requests":[{"type":"collect","object":"q"}]}')


@pytest.mark.parametrize(("text", "oldest", "newest"), [("1", 1, 1), ("1-2", 1, 2), ("3-12", 3, 12)])
def test_versions_of_the_protocol_are_read_as_they_are_written(text: str, oldest: int, newest: int) -> None:
    assert protocols_in(text) == Protocols(oldest, newest)
    assert Protocols(oldest, newest).text == text


@pytest.mark.parametrize(
    "text", ["", "0", "0-1", "2-1", "1-", "-1", "1-2-3", " 1", "1\n", "10000", "\u0661", "one"]
)
def test_what_names_no_versions_is_told_apart(text: str) -> None:
    assert protocols_in(text) is None


@pytest.mark.parametrize(
    ("sender", "spoken", "updated", "version"),
    [((1, 1), (2, 3), "the sender", 2), ((1, 2), (3, 3), "the sender", 3), ((4, 5), (1, 3), "replica r7", 4)],
)
def test_who_cannot_talk_hears_both_versions_and_who_is_to_be_updated(
    sender: tuple[int, int], spoken: tuple[int, int], updated: str, version: int
) -> None:
    here, there = Protocols(*sender), Protocols(*spoken)
    why = why_not_spoken(here, "r7", there)
    assert why is not None
    assert f"sender speaks {here.told} of" in why
    assert f"replica r7 {there.told}: update {updated} to a release that speaks version {version}" in why


@pytest.mark.parametrize(
    ("sender", "spoken"),
    [((1, 2), (1, 2)), ((1, 1), (1, 2)), ((1, 2), (2, 2)), ((2, 9), (1, 2)), ((1, 9), (3, 4))],
)
def test_one_common_version_is_enough(sender: tuple[int, int], spoken: tuple[int, int]) -> None:
    assert why_not_spoken(Protocols(*sender), "r1", Protocols(*spoken)) is None
