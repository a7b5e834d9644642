"""What arrives damaged, or was never a message: the declared error, and nothing else."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.api_specs.checking import BadBatch, check_batch
from quorate.api_specs.limits import DEFAULTS
from quorate.api_specs.messages import Batch, BatchReply
from quorate.api_specs.problems import Problem
from quorate.api_specs.problems import parse as parse_problem
from quorate.api_specs.values import check_value, from_value, to_value
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.http_answer import HttpAnswer, batch_reply
from quorate.replica.api.protocol_api import _DECODE, JSON, MSGPACK, _decoded
from quorate.replica.http.problems import Refusal, problem_of
from quorate.replica.protocol.log import ObjectState
from quorate.timestamps.ballot import parse_ballot
from quorate.timestamps.timestamp import parse
from tests.unit.api_specs.strategies import values_of
from tests.unit.api_specs.test_values import VALUES

ENCODE: dict[str, Callable[[Any], bytes]] = {JSON: msgspec.json.encode, MSGPACK: msgspec.msgpack.encode}
MODEST = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
DAMAGES = st.lists(
    st.tuples(st.sampled_from(["cut", "change", "put", "drop"]), st.floats(0, 1), st.integers(0, 255)),
    min_size=1,
    max_size=3,
)
Damages = list[tuple[str, float, int]]


def damaged(body: bytes, damages: Damages) -> bytes:
    """The bytes with each damage at its place, a share of the whole length."""
    for kind, share, byte in damages:
        place = int(share * len(body))
        after = place if kind == "put" else place + 1
        replaced = b"" if kind in ("cut", "drop") else bytes([byte])
        body = body[:place] + replaced + (b"" if kind == "cut" else body[after:])
    return body


@pytest.mark.parametrize("media_type", ENCODE)
@MODEST
@given(values_of(Batch), DAMAGES)
def test_a_damaged_batch_is_malformed_or_another_batch(
    media_type: str, batch: Batch, damages: Damages
) -> None:
    problem = None
    try:
        check_batch(_decoded(damaged(ENCODE[media_type](batch), damages), media_type, _DECODE), DEFAULTS)
    except (Refusal, BadBatch) as refused:
        problem = problem_of(refused)
    assert problem is None or (problem.name, problem.definite) == ("malformed", True)


@pytest.mark.parametrize("media_type", ENCODE)
@MODEST
@given(values_of(BatchReply), DAMAGES)
def test_a_damaged_reply_is_no_answer_or_another_reply(
    media_type: str, reply: BatchReply, damages: Damages
) -> None:
    body = damaged(ENCODE[media_type](reply), damages)
    for status in (200, 400, 503):
        answer = batch_reply("r1", HttpAnswer(status, media_type, "", body))
        assert isinstance(
            answer, BatchReply if status == 200 and isinstance(answer, BatchReply) else Unanswered
        )


@MODEST
@given(st.binary(max_size=60) | VALUES.map(msgspec.json.encode))
def test_any_body_is_a_problem_or_none(body: bytes) -> None:
    assert isinstance(parse_problem(body), Problem | None)


@given(st.text(max_size=60) | st.text("0123456789abcdef./z", max_size=70))
def test_any_text_is_a_timestamp_a_ballot_or_a_value_error(text: str) -> None:
    for parsed in (parse, parse_ballot):
        with suppress(ValueError):
            assert parsed(text) == text


@given(st.text(max_size=60) | st.text('[]{}",:0123456789.eE-+ntrufalsNI \\', max_size=60))
def test_any_text_is_a_value_or_a_sentence(text: str) -> None:
    """What passes for a value can be read; in its canonical form it passes too, and stays as it is."""
    wrong = check_value(text, DEFAULTS)
    if wrong is not None:
        assert wrong.startswith("the value")
        return
    canonical = to_value(from_value(text))  # type: ignore[arg-type]
    assert check_value(canonical, DEFAULTS) is None
    assert to_value(from_value(canonical)) == canonical


@MODEST
@given(values_of(ObjectState))
def test_what_is_stored_of_an_object_comes_back(state: ObjectState) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=ObjectState) == state
