"""The replica protocol over HTTP: batches and forwarded requests, in JSON or MessagePack, and announcements.

Owns decoding, the check that sender and replica hold the same cluster file, and encoding. It is the hot path, so
batches and forwarded requests do not pass the framework; their place in the OpenAPI document is made from the same message types.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...api_specs.checking import Checked, check_announcement, check_batch, check_forwarded
from ...api_specs.commands import DequeueCommand
from ...api_specs.limits import BATCH_ENTRIES_MAX, BODY_VALUES_MAX, Limits
from ...api_specs.messages import (
    NOT_DECODED,
    PROTOCOL_HEADER,
    SPOKEN,
    UNTOLD,
    Accept,
    Announcement,
    Append,
    Batch,
    BatchReply,
    Collect,
    Commit,
    ForwardedReply,
    ForwardedRequest,
    Reserve,
    Testimony,
    Window,
    protocols_in,
    why_not_spoken,
)
from ...api_specs.outboxes import check_records
from ...api_specs.problems import problem
from ...timestamps.timestamp import Timestamp
from ..access.authorization import batch_problem, foreign_requests, forwarding_problem, may_hand_on
from ..access.credentials import Credential
from ..access.token_list import Access
from ..http import json_body
from ..http.cancellation import ends_before_caller_goes
from ..http.gate import CALLER, asks_too_often, lacks_scope
from ..http.large_bodies import read_apart, turn
from ..http.problems import ProblemResponse, Refusal
from ..http.routers import PROTOCOL_TAG
from ..service.member import Member
from ..service.own_types import OwnTypes, check_calls, loaded
from .forwarded import Serving

PATH: Final = "/replica/v1/batch"
FORWARD_PATH: Final = "/replica/v1/forward"
ANNOUNCEMENT_PATH: Final = "/replica/v1/announcement"
JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
MESSAGES: Final = (Batch, BatchReply, ForwardedRequest, ForwardedReply, Announcement, Testimony)
"""All that is sent and answered."""
_JSON: Final = JSON.encode()
_PROTOCOL: Final = PROTOCOL_HEADER.lower().encode()
_SPOKEN: Final = SPOKEN.text.encode()

_Message = TypeVar("_Message")

_DECODE: Final[Mapping[str, Callable[[bytes], Batch]]] = {
    JSON: msgspec.json.Decoder(Batch).decode,
    MSGPACK: msgspec.msgpack.Decoder(Batch).decode,
}
_DECODE_FORWARDED: Final[Mapping[str, Callable[[bytes], ForwardedRequest]]] = {
    JSON: msgspec.json.Decoder(ForwardedRequest).decode,
    MSGPACK: msgspec.msgpack.Decoder(ForwardedRequest).decode,
}
_DECODE_ANNOUNCEMENT: Final = {JSON: msgspec.json.Decoder(Announcement).decode}
_ENCODE: Final[Mapping[str, Callable[[BatchReply | ForwardedReply], bytes]]] = {
    JSON: msgspec.json.Encoder().encode,
    MSGPACK: msgspec.msgpack.Encoder().encode,
}


class Batches:
    """What the bytes of a batch mean, and how its reply is put into bytes. `access` knows whose sites are whose, `types` the code of types of
    one's own."""

    def __init__(self, member: Member, access: Access, types: OwnTypes) -> None:
        self.member: Final = member
        self._access: Final = access
        self._types: Final = loaded(types)

    def read(self, headers: Mapping[bytes, bytes], body: bytes, caller: Credential) -> tuple[Checked, str]:
        """The checked batch, and the media type to answer in. Raises what `..http.problems.problem_of` knows."""
        check_protocol(headers, self.member)
        media_type = _media_type(headers.get(b"content-type", _JSON).decode("latin-1"))
        batch = _decoded(body, media_type, _DECODE)
        if not caller.bucket.charge(_asked(batch, self.member.document.limits) - 1):
            raise asks_too_often(caller)
        # Before what costs more; and once more in the store's turn.
        self.member.configured.check(batch.cluster)
        document = self.member.document
        check = partial(self._check_entries, caller) if self._types or document.has_outboxes else None
        foreign = foreign_requests(batch, caller, document)
        if foreign and len(foreign) == len(batch.requests):
            raise lacks_scope(foreign[0].detail)
        found = check_batch(batch, document.limits, check, foreign)
        if (lacking := batch_problem(found.sound, caller, self._access.known)) is not None:
            raise lacks_scope(lacking)
        return found, _answer_type(headers.get(b"accept", b"").decode("latin-1"), media_type)

    def _check_entries(self, caller: Credential, request: Append | Accept | Commit) -> None:
        if not may_hand_on(request, caller):
            document = self.member.document
            if type(request) is Append:
                check_calls(self._types, document.limits.stored_depth_max, request)
            if document.outbox(request.object) is not None:
                check_records(request, document.clock.offset_max_s)

    def written(self, found: Checked, reply: BatchReply, media_type: str) -> bytes:
        """The body of the answer."""
        return _ENCODE[media_type](found.whole(reply))


def _asked(batch: Batch, limits: Limits) -> int:
    """As how many requests a batch counts: one that asks for keys as many times as it has some, for elsewhere each of them comes with a
    request. Never more than are done of one batch."""
    reserves = (each for each in batch.requests if type(each) is Reserve)
    further_keys = sum(max(0, len(each.proposals) - 1) for each in reserves)
    keys_max = BATCH_ENTRIES_MAX + limits.batch_items_max
    return min(len(batch.requests), limits.requests_max) + min(further_keys, keys_max)


def check_protocol(headers: Mapping[bytes, bytes], member: Member) -> None:
    """Raises Refusal unless the sender speaks a version of the protocol that the replica speaks. It is asked before the message is decoded,
    which may have what other versions do not know."""
    given = headers.get(_PROTOCOL, UNTOLD.text.encode())
    if given == _SPOKEN:
        return  # The usual case: a release has a version in common with itself, whatever the configuration.
    if (sender := protocols_in(given.decode("latin-1"))) is None:
        raise Refusal(
            "malformed",
            f"{PROTOCOL_HEADER}: must be the oldest and the newest version that is spoken, as {SPOKEN.text}",
        )
    if (why := why_not_spoken(sender, member.id, member.configured.protocols)) is not None:
        raise Refusal("other-protocol", why)


def batch_app(batches: Batches) -> ASGIApp:
    """The ASGI application that answers batches. It stands behind a Gate, which says who asks, hands it a body in one piece
    and makes problem documents of what it raises."""

    async def answer_batch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            refused = problem("method-not-allowed", f"not with {scope['method']}")
            await ProblemResponse(refused, {"Allow": "POST"})(scope, receive, send)
            return
        body = (await receive())["body"]
        read = partial(batches.read, dict(scope["headers"]), body, scope[CALLER])
        found, media_type = await read_apart(read)
        answering = asyncio.ensure_future(batches.member.answer(found.sound, turn()))
        try:
            if not await ends_before_caller_goes(answering, receive):
                return
            body = batches.written(found, answering.result(), media_type)
        finally:
            del answering  # What it raised knows this frame: see `..http.large_bodies.read_apart`.
        sent = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    return answer_batch


def forward_app(serving: Serving, access: Access) -> ASGIApp:
    """The ASGI application at which other front ends ask the replica's own; where it stands, see `batch_app`."""
    member = serving.member

    async def answer_forwarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            refused = problem("method-not-allowed", f"not with {scope['method']}")
            await ProblemResponse(refused, {"Allow": "POST"})(scope, receive, send)
            return
        headers = dict(scope["headers"])
        check_protocol(headers, member)
        media_type = _media_type(headers.get(b"content-type", _JSON).decode("latin-1"))
        forwarded = await read_apart(partial(_forwarded, (await receive())["body"], media_type, member))
        within = member.document
        if (lacking := forwarding_problem(forwarded, scope[CALLER], access.known, within)) is not None:
            raise lacks_scope(lacking)
        answer_type = _answer_type(headers.get(b"accept", b"").decode("latin-1"), media_type)
        body = _ENCODE[answer_type](await serving.serve(forwarded))
        sent = [(b"content-type", answer_type.encode()), (b"content-length", str(len(body)).encode())]
        if member.is_stopping:
            sent.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    return answer_forwarded


def _forwarded(body: bytes, media_type: str, member: Member) -> ForwardedRequest:
    """The checked forwarded request. Raises what `..http.problems.problem_of` knows."""
    forwarded = _decoded(body, media_type, _DECODE_FORWARDED)
    member.configured.check(forwarded.cluster)
    check_forwarded(forwarded, member.document.limits, member.document.specifications)
    return forwarded


def announcement_endpoint(member: Member) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint at which other replicas announce themselves to `member`."""

    async def answer_announcement(request: Request) -> Response:
        check_protocol(dict(request.scope["headers"]), member)
        body = await request.body()
        announcement = await read_apart(lambda: _decoded(body, JSON, _DECODE_ANNOUNCEMENT))
        within = member.document
        member.configured.check(announcement.cluster)
        check_announcement(announcement, member.id, within.former_members)
        return Response(msgspec.json.encode(await member.testify(announcement, within)), media_type=JSON)

    return answer_announcement


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _decoded(body: bytes, media_type: str, decoders: Mapping[str, Callable[[bytes], _Message]]) -> _Message:
    decode = decoders.get(media_type)
    if decode is None:
        raise Refusal("unsupported-media-type", f"a message is sent as {JSON} or {MSGPACK}")
    try:
        if media_type == JSON:
            json_body.decoded(body)
        elif not _has_few_values(body, BODY_VALUES_MAX):
            detail = f"the message has more than {BODY_VALUES_MAX} values (BODY_VALUES_MAX): send what it holds in several"
            raise Refusal("too-large", detail)
        return decode(body)
    except (*NOT_DECODED, ValueError) as error:
        raise Refusal("malformed", str(error)) from None


def _has_few_values(message: bytes, most: int) -> bool:
    """Whether a message in MessagePack has at most so many texts, arrays and objects, by the bytes that are no part of UTF-8 text. Each of
    these begins with one. It is missed only within what looks like a character: where a text has 128 bytes at least, an array or object
    32,768 parts, or a number or truth value stands before it, of which no message has lists."""
    return len(message) <= most or len(message) - len(message.decode(errors="ignore").encode()) <= most


def _answer_type(accept: str, given: str) -> str:
    """What the sender named; the type that it wrote in when it names both or neither."""
    named = [media_type for media_type in (JSON, MSGPACK) if media_type in accept]
    return named[0] if len(named) == 1 else given


def describe(document: dict[str, Any]) -> None:
    """Add batches, forwarded requests and announcements to an OpenAPI document: what is sent and answered, and what for."""
    example_hash, example_id = "3f8a0c52b1d94e67", "0006424e5d3c80.0000.k3v9q0a1b2c3d"
    document["paths"][PATH] = _described(
        "sendBatch",
        "For front ends. The requests of a batch are handled in one transaction, in order; the reply is sent when "
        "everything it promises is on disk. Every request is idempotent. Where there are fewer replies than requests, "
        "nothing was done of the rest, which would have made the answer too long or taken too much time: send it again.",
        Batch(example_hash, (Collect("queue/jobs", window=Window(limit=10)),)),
        BatchReply,
    )
    document["paths"][FORWARD_PATH] = _described(
        "forwardRequest",
        "For front ends that share an object: this one decides the commands of all in one go. A forwarded request is served once at "
        "most; it is not to be repeated. A result that is denied and not definite may have taken effect.",
        ForwardedRequest(
            example_hash, Timestamp(example_id), "queue/jobs", "9b2e61f7c0a35d84", (DequeueCommand(1),), 5.0
        ),
        ForwardedReply,
    )
    document["paths"][ANNOUNCEMENT_PATH] = _described(
        "announceReplica",
        "For replicas among themselves: the sender learns how far its store was seen to come, so that one that was "
        "rolled back or swapped does not vote.",
        Announcement(example_hash, "r1", "d41c7b0a9e6f3852", Timestamp(example_id)),
        Testimony,
        media_types=(JSON,),
    )


def _described(
    operation_id: str,
    description: str,
    sent: Batch | ForwardedRequest | Announcement,
    answered: type[BatchReply | ForwardedReply | Testimony],
    media_types: tuple[str, ...] = (JSON, MSGPACK),
) -> dict[str, Any]:
    body: dict[str, Any] = {each: {"schema": _reference(type(sent))} for each in media_types}
    body[JSON]["example"] = msgspec.to_builtins(sent)
    content = {each: {"schema": _reference(answered)} for each in media_types}
    return {
        "post": {
            "tags": [PROTOCOL_TAG],
            "description": description,
            "operationId": operation_id,
            "requestBody": {"required": True, "content": body},
            "responses": {"200": {"content": content}},
        }
    }


def _reference(message: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{message.__name__}"}
