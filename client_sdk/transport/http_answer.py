"""What an HTTP answer says: a message of the protocol, or why there is none, and whether that is definite. Pure.

Owns the reading of statuses, problem documents and malformed bodies. Must not know how answers travel.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from ...api_specs.messages import NOT_DECODED, BatchReply
from ...api_specs.problems import as_limit
from ..protocol.core.values import Unanswered
from .ports import Done, GiveUp, answer_to

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"
DETAIL_CHARS_MAX: Final = 300

NOTHING_DONE: Final = frozenset({"store-lost", "other-configuration", "starting", "stopping", "overloaded"})
"""Problems that a replica answers with before it does anything, though their status (503) does not say so."""

_Message = TypeVar("_Message")


class HttpAnswer(Struct, frozen=True):
    """An answer as it came: the status, two of its headers (empty when absent), and the whole body."""

    status: int
    content_type: str
    location: str
    body: bytes


class HttpClient(Protocol):
    """Sends requests and brings answers. Never raises for what a network or a server does: it answers Unanswered."""

    async def request(
        self,
        who: str,
        url: str,
        *,
        timeout_s: float,
        bytes_max: int,
        body: bytes | None = None,
        media_type: str = JSON,
    ) -> HttpAnswer | Unanswered:
        """The answer to a POST of `body`, or to a GET without one; `who` stands in front of what went wrong.

        It has at most `bytes_max` bytes and comes within `timeout_s`. Redirects are not followed: the token would go along.
        May be cancelled.
        """
        return await answer_to(
            lambda done: self.send(
                who, url, done, timeout_s=timeout_s, bytes_max=bytes_max, body=body, media_type=media_type
            )
        )

    def send(
        self,
        who: str,
        url: str,
        done: Done[HttpAnswer | Unanswered],
        *,
        timeout_s: float,
        bytes_max: int,
        body: bytes | None = None,
        media_type: str = JSON,
    ) -> GiveUp:
        """As `request`, for who would rather be told than wait."""

    async def aclose(self) -> None:
        """Give up all connections; no request is under way."""


class _Problem(Struct, frozen=True):
    """What is read of a problem document (RFC 9457); the rest is left alone."""

    type: str = ""
    title: str = ""
    detail: str = ""
    advice: str = ""
    definite: bool | None = None
    epoch: int | None = None

    @property
    def name(self) -> str:
        """The last part of the type, whatever stands before it."""
        return self.type.replace("#", "/").replace(":", "/").rpartition("/")[2]


_DECODE_PROBLEM: Final = msgspec.json.Decoder(_Problem).decode
_DECODE_JSON_BATCH: Final = msgspec.json.Decoder(BatchReply).decode
_DECODE_BATCH: Final = msgspec.msgpack.Decoder(BatchReply).decode


def unanswered(who: str, sentence: str, *, definite: bool = False) -> Unanswered:
    """No answer from `who`, for the reason in the sentence."""
    return Unanswered(f"{who}: {sentence}"[:DETAIL_CHARS_MAX], definite=definite)


def batch_reply(who: str, answer: HttpAnswer) -> BatchReply | Unanswered:
    """The reply to a batch that an answer holds."""
    is_json = answer.content_type.partition(";")[0].strip() == JSON
    return message(who, answer, _DECODE_JSON_BATCH if is_json else _DECODE_BATCH)


def message(who: str, answer: HttpAnswer, decode: Callable[[bytes], _Message]) -> _Message | Unanswered:
    """The message that an answer holds, as `decode` reads it."""
    if answer.status != HTTPStatus.OK:
        return refusal(who, answer)
    try:
        return decode(answer.body)
    except NOT_DECODED as error:
        return unanswered(who, f"its answer is malformed: {error}")


def problem_in(answer: HttpAnswer) -> str:
    """The name of the problem that an answer holds, as `no-such-path`; empty where it holds none."""
    return _problem(answer.body).name


def refusal(who: str, answer: HttpAnswer) -> Unanswered:
    """An answer that is not 200: a problem document says what it means, the status what kind of failure it is."""
    status = answer.status
    problem = _problem(answer.body)
    sentence = problem.detail or problem.title or f"it answered with HTTP status {status}"
    if answer.location and 300 <= status < 400:
        sentence = f"it redirects to {answer.location!r}: give the replica's own URL"
    elif problem.advice:
        sentence = f"{sentence.rstrip('.')}. {problem.advice.rstrip('.')}"
    limit = as_limit(problem.name)
    is_for_later = status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    refused = limit is not None or (300 <= status < 500 and not is_for_later)
    definite = problem.definite
    if definite is None:
        definite = refused or problem.name in NOTHING_DONE
    return Unanswered(
        f"{who}: {sentence}"[:DETAIL_CHARS_MAX],
        refused=refused,
        definite=definite,
        limit=limit,
        epoch=problem.epoch,
    )


def _problem(body: bytes) -> _Problem:
    try:
        return _DECODE_PROBLEM(body)
    except NOT_DECODED:
        return _Problem()
