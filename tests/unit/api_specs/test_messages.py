"""Messages: what is sent is what arrives, in both encodings, and what no front end sends is refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from quorate.api_specs.messages import Batch, BatchReply, Request
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
