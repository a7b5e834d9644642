"""The replica protocol over HTTP: `POST /replica/v1/batch`, in JSON or MessagePack.

Owns decoding, the check that sender and replica hold the same cluster document, and encoding. It is the hot path, so it
stays off the typed machinery; its place in the OpenAPI document is made from the same message types.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from quorate.api_specs.checking import check_announcement, check_batch
from quorate.api_specs.messages import Announcement, Batch, BatchReply, Refused, Testimony
from quorate.replica.member import Member
from quorate.replica.responses import Refusal

PATH: Final = "/replica/v1/batch"
ANNOUNCEMENT_PATH: Final = "/replica/v1/announcement"
JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"

_DECODE: Final[Mapping[str, Callable[[bytes], Batch]]] = {
    JSON: msgspec.json.Decoder(Batch).decode,
    MSGPACK: msgspec.msgpack.Decoder(Batch).decode,
}
_ENCODE: Final[Mapping[str, Callable[[BatchReply], bytes]]] = {
    JSON: msgspec.json.Encoder().encode,
    MSGPACK: msgspec.msgpack.Encoder().encode,
}


def batch_endpoint(member: Member) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that answers batches for `member`."""

    async def answer_batch(request: Request) -> Response:
        media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        batch = _decoded(await request.body(), media_type)
        _check_cluster(batch.cluster, member)
        check_batch(batch, member.document.limits)
        reply = await member.answer(batch.requests)
        _raise_if_all_refused(reply)
        answer_type = _answer_type(request.headers.get("accept", ""), media_type)
        return Response(_ENCODE[answer_type](reply), media_type=answer_type)

    return answer_batch


def announcement_endpoint(member: Member) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint at which other replicas announce themselves to `member`."""

    async def answer_announcement(request: Request) -> Response:
        try:
            announcement = msgspec.json.decode(await request.body(), type=Announcement)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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


def _decoded(body: bytes, media_type: str) -> Batch:
    decode = _DECODE.get(media_type)
    if decode is None:
        raise Refusal("unsupported-media-type", f"a batch is sent as {JSON} or {MSGPACK}")
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("malformed", str(error)) from None


def _answer_type(accept: str, given: str) -> str:
    """What the sender named; the type that it wrote in when it names both or neither."""
    named = [media_type for media_type in (JSON, MSGPACK) if media_type in accept]
    return named[0] if len(named) == 1 else given


def describe(document: dict[str, Any], errors: dict[str, Any]) -> None:
    """Add the protocol to an OpenAPI document."""
    (batch, reply, announcement, testimony), components = msgspec.json.schema_components(
        (Batch, BatchReply, Announcement, Testimony), ref_template="#/components/schemas/{name}"
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
