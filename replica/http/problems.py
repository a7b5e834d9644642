"""Problem documents as HTTP responses, and the step from each error of the replica to its problem.

The one place where what goes wrong inside gets a name outside. Must not know any endpoint.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...adts.types.catalogue import BadName
from ...api_specs.checking import BadBatch
from ...api_specs.problems import LIMITS, MEDIA_TYPE, Problem, problem
from ...api_specs.values import BadValue
from ...client_sdk.errors import Closed
from ...client_sdk.protocol.core.values import Failed
from ..service.configured import WrongCluster
from ..service.copying import NoRoom
from ..service.member import OtherConfiguration, Starting, StoreLost
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed

RETRY_AFTER_S: Final = 1
PROBLEM: Final = "quorate.problem"
"""Where a scope of ASGI holds the name of the problem that its request was answered with."""
_log = logging.getLogger(__name__)

_NAMES: Final[Mapping[type[Exception], str]] = {
    BadBatch: "malformed",
    BadName: "bad-name",
    BadValue: "malformed",
    NoRoom: "no-room",
    Overloaded: "overloaded",
    StorageFailed: "storage-failed",
    StoreLost: "store-lost",
    OtherConfiguration: "other-configuration",
    Starting: "starting",
}


class Refusal(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        definite: bool | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers: Final[dict[str, str]] = dict(headers or {})
        self.problem: Final = problem(name, detail, definite=definite)


class ProblemResponse(Response):
    """A response that carries a problem, and leaves its name in the scope; `headers` besides those of each."""

    def __init__(self, document: Problem, headers: Mapping[str, str] | None = None) -> None:
        body, headers = msgspec.json.encode(document), headers_of(document, headers)
        super().__init__(body, document.status, headers=headers, media_type=MEDIA_TYPE)
        self._name: Final = document.name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[PROBLEM] = self._name
        await super().__call__(scope, receive, send)


def headers_of(document: Problem, headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """The headers of the response that carries a problem, besides what its body is; those given among them."""
    all_headers = dict(headers or {})
    if document.name in ("overloaded", "starting", *LIMITS):
        all_headers["Retry-After"] = str(RETRY_AFTER_S)
    return all_headers


def whole_answer(document: Problem) -> bytes:
    """An answer that carries a problem, from the status line on, for what the application never sees. No other request may follow."""
    body = msgspec.json.encode(document)
    lines = [
        f"HTTP/1.1 {document.status} {HTTPStatus(document.status).phrase}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
        *(f"{name.lower()}: {value}" for name, value in headers_of(document).items()),
    ]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def problem_of(error: Exception) -> Problem:
    """The problem that tells of `error`. One that nobody foresaw is logged; the client learns no more than that."""
    if isinstance(error, Refusal):
        return error.problem
    if isinstance(error, Closed):
        return problem("unavailable", "the replica is stopping", definite=error.definite)
    if isinstance(error, WrongCluster):
        return problem("wrong-cluster", str(error), epoch=error.epoch)
    name = _NAMES.get(type(error))
    if name is not None:
        return problem(name, str(error))
    _log.error("a request met an error of the replica's own", exc_info=error)
    return problem("internal", "the replica's log has the details")


def refusal_of(failed: Failed) -> Refusal:
    """The refusal that tells of an operation that gave no answer."""
    return Refusal(
        "outcome-unknown" if failed.reason == "unknown" else failed.reason,
        failed.detail,
        definite=failed.definite and failed.reason != "unknown",
    )
