"""The replica protocol over HTTP: batches and asks, in JSON or MessagePack, and announcements.

Owns decoding, the check that sender and replica hold the same cluster document, and encoding. It is the hot path, so
batches do not pass the framework; their place in the OpenAPI document is made from the same message types.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from quorate.api_specs.checking import check_announcement, check_ask, check_batch
from quorate.api_specs.messages import (
    NOT_DECODED,
    Announcement,
    Ask,
    Batch,
    BatchReply,
    Refused,
    Served,
    Testimony,
)
from quorate.api_specs.problems import problem
from quorate.replica.access import Access
from quorate.replica.gate import CALLER, lacks_scope
from quorate.replica.member import Member
from quorate.replica.responses import Refusal, problem_response
from quorate.replica.rights import ask_problem, batch_problem
from quorate.replica.serving import Serving

PATH: Final = "/replica/v1/batch"
ASK_PATH: Final = "/replica/v1/ask"
ANNOUNCEMENT_PATH: Final = "/replica/v1/announcement"
JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
_JSON: Final = JSON.encode()

_Message = TypeVar("_Message")

_DECODE: Final[Mapping[str, Callable[[bytes], Batch]]] = {
    JSON: msgspec.json.Decoder(Batch).decode,
    MSGPACK: msgspec.msgpack.Decoder(Batch).decode,
}
_DECODE_ASK: Final[Mapping[str, Callable[[bytes], Ask]]] = {
    JSON: msgspec.json.Decoder(Ask).decode,
    MSGPACK: msgspec.msgpack.Decoder(Ask).decode,
}
_ENCODE: Final[Mapping[str, Callable[[BatchReply | Served], bytes]]] = {
    JSON: msgspec.json.Encoder().encode,
    MSGPACK: msgspec.msgpack.Encoder().encode,
}


def batch_app(member: Member, access: Access) -> ASGIApp:
    """The ASGI application that answers batches for `member`. It stands behind a Gate, which says who asks, hands it a body
    in one piece and makes problem documents of what it raises. `access` knows whose sites are whose."""

    async def answer_batch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            refused = problem("method-not-allowed", f"not with {scope['method']}")
            await problem_response(refused, {"Allow": "POST"})(scope, receive, send)
            return
        headers = dict(scope["headers"])
        media_type = _media_type(headers.get(b"content-type", _JSON).decode("latin-1"))
        batch = _decoded((await receive())["body"], media_type, _DECODE)
        _check_cluster(batch.cluster, member)
        check_batch(batch, member.document.limits)
        if (lacking := batch_problem(batch, scope[CALLER], access.known)) is not None:
            raise lacks_scope(lacking)
        reply = await member.answer(batch.requests)
        _raise_if_all_refused(reply)
        answer_type = _answer_type(headers.get(b"accept", b"").decode("latin-1"), media_type)
        body = _ENCODE[answer_type](reply)
        sent = [(b"content-type", answer_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    return answer_batch


def ask_endpoint(serving: Serving, access: Access) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint at which other front ends ask the replica's own."""

    async def answer_ask(request: Request) -> Response:
        media_type = _media_type(request.headers.get("content-type", JSON))
        ask = _decoded(await request.body(), media_type, _DECODE_ASK)
        _check_cluster(ask.cluster, serving.member)
        check_ask(ask, serving.member.document.limits)
        if (lacking := ask_problem(ask, request.scope[CALLER], access.known)) is not None:
            raise lacks_scope(lacking)
        answer_type = _answer_type(request.headers.get("accept", ""), media_type)
        return Response(_ENCODE[answer_type](await serving.serve(ask)), media_type=answer_type)

    return answer_ask


def announcement_endpoint(member: Member) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint at which other replicas announce themselves to `member`."""

    async def answer_announcement(request: Request) -> Response:
        try:
            announcement = msgspec.json.decode(await request.body(), type=Announcement)
        except NOT_DECODED as error:
            raise Refusal("malformed", str(error)) from None
        _check_cluster(announcement.cluster, member)
        check_announcement(announcement, [each for each in member.document.urls if each != member.id])
        return Response(msgspec.json.encode(await member.testify(announcement)), media_type=JSON)

    return answer_announcement


def _check_cluster(given: str, member: Member) -> None:
    if given != (expected := member.document.hash):
        raise Refusal(
            "wrong-cluster",
            f"the sender's cluster document has hash {_shown(given)}, this replica's has {expected}",
        )


def _raise_if_all_refused(reply: BatchReply) -> None:
    """A batch of which nothing was done is answered as a problem; one bad request among others has a reply of its own."""
    refused = [each for each in reply.replies if isinstance(each, Refused)]
    if refused and len(refused) == len(reply.replies):
        first = refused[0]
        raise Refusal("malformed" if first.reason == "bad-request" else first.reason, first.detail)


def _shown(text: str) -> str:
    return text[:64] if text.isascii() and text.isalnum() else "of no valid form"


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _decoded(body: bytes, media_type: str, decoders: Mapping[str, Callable[[bytes], _Message]]) -> _Message:
    decode = decoders.get(media_type)
    if decode is None:
        raise Refusal("unsupported-media-type", f"a message is sent as {JSON} or {MSGPACK}")
    try:
        return decode(body)
    except NOT_DECODED as error:
        raise Refusal("malformed", str(error)) from None


def _answer_type(accept: str, given: str) -> str:
    """What the sender named; the type that it wrote in when it names both or neither."""
    named = [media_type for media_type in (JSON, MSGPACK) if media_type in accept]
    return named[0] if len(named) == 1 else given


def describe(document: dict[str, Any], errors: dict[str, Any]) -> None:
    """Add the protocol to an OpenAPI document."""
    (batch, reply, ask, served, announcement, testimony), components = msgspec.json.schema_components(
        (Batch, BatchReply, Ask, Served, Announcement, Testimony),
        ref_template="#/components/schemas/{name}",
    )
    document["components"].setdefault("schemas", {}).update(components)
    document["paths"][PATH] = {
        "post": {
            "tags": ["replica protocol"],
            "summary": "Answer a batch of protocol requests",
            "description": "For front ends. All requests of a batch are handled in one transaction, in order; the "
            "reply is sent when everything it promises is on disk. Every request is idempotent.",
            "operationId": "answerBatch",
            "requestBody": {
                "required": True,
                "content": {media_type: {"schema": batch} for media_type in (JSON, MSGPACK)},
            },
            "responses": {
                "200": {
                    "description": "One reply per request, in order; if all were refused, a problem instead",
                    "content": {media_type: {"schema": reply} for media_type in (JSON, MSGPACK)},
                },
                **errors,
            },
        }
    }
    document["paths"][ASK_PATH] = {
        "post": {
            "tags": ["replica protocol"],
            "summary": "Ask the replica's front end to decide",
            "description": "For front ends that share an object: this one decides the wishes of all in one go. An ask is "
            "served once at most; it is not to be repeated. A result that is denied and not definite may have taken effect.",
            "operationId": "ask",
            "requestBody": {
                "required": True,
                "content": {media_type: {"schema": ask} for media_type in (JSON, MSGPACK)},
            },
            "responses": {
                "200": {
                    "description": "One result per wish, in order",
                    "content": {media_type: {"schema": served} for media_type in (JSON, MSGPACK)},
                },
                **errors,
            },
        }
    }
    document["paths"][ANNOUNCEMENT_PATH] = {
        "post": {
            "tags": ["replica protocol"],
            "summary": "Bear witness to another replica's store",
            "description": "For replicas among themselves: the sender learns how far its store was seen to come, so that "
            "one that was rolled back or swapped does not vote.",
            "operationId": "announce",
            "requestBody": {"required": True, "content": {JSON: {"schema": announcement}}},
            "responses": {
                "200": {
                    "description": "What was known before; empty when nothing was",
                    "content": {JSON: {"schema": testimony}},
                },
                **errors,
            },
        }
    }
