"""Questions to single replicas over HTTP, outside any quorum: is it ready, how is it, what do its logs hold.

Owns the requests that only a command line asks. Operations on objects go through the SDK.
"""

import asyncio
import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, NoReturn

from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import BACKUP_S_MAX, BACKUP_SENT_S_MAX
from ...api_specs.messages import Batch, Collected, Refused, Scan, Scanned
from ...client_sdk.protocol.core.values import Unanswered
from ...client_sdk.transport.http_transport import HttpTransport
from ...client_sdk.transport.tls import from_environment
from ..values import spelled_out

TIMEOUT_S: Final = 2.0
_CHUNK: Final = 1024 * 1024
_READY_TIMEOUT_S: Final = 1.0
_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
_SCANS_MAX: Final = 100


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the answer that it is: the token would go along to wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """See urllib."""


def _opened(request: urllib.request.Request, timeout_s: float) -> Any:
    """The answer. No proxies: replicas are named by their own addresses, and a token must go nowhere else."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirects()]
    if request.type == "https":
        handlers.append(urllib.request.HTTPSHandler(context=from_environment().context()))
    return urllib.request.build_opener(*handlers).open(request, timeout=timeout_s)


class NoAnswer(Exception):
    """The replica gave no useful answer; the message says why, in a few words."""


class Refuses(NoAnswer):
    """The replica answers, and refuses to tell."""


class WrongToken(Refuses):
    """The replica answers, and refuses the token that was sent, or that none was."""


class HostUnknown(NoAnswer):
    """No machine is known here by the name in the replica's URL."""

    fix = "correct its url in the cluster file, or have this machine's name service know the host"


class TlsFailed(NoAnswer):
    """Something listens there, and TLS with it failed. `fix` is what to do: nothing need be started for it."""

    def __init__(self, error: ssl.SSLError) -> None:
        if isinstance(error, ssl.SSLCertVerificationError):
            super().__init__(f"its certificate is not accepted: {error.verify_message}")
            self.fix = (
                "give it a certificate that is valid for this host, or name its authority in QUORATE_TLS_CA"
            )
        else:
            super().__init__(f"TLS with it failed: {error.reason or error}")
            self.fix = (
                "see that it is served with TLS, and that QUORATE_TLS_CERT and QUORATE_TLS_KEY name a certificate that it "
                "accepts, if it asks for one"
            )


def get(url: str, path: str, token: str | None = None, timeout_s: float = TIMEOUT_S) -> Any:
    """The JSON that the replica at `url` answers at `path`. Raises NoAnswer."""
    try:
        with _answered(_request(url, path, token), timeout_s) as response:
            return _shown(json.loads(_body(response, timeout_s)))
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"it answers, but not as a replica does ({error})") from None


def download(url: str, path: str, token: str | None, target: BinaryIO) -> Mapping[str, str]:
    """Have the replica at `url` act (POST), write the body of its answer to `target`; the answer's headers. Raises NoAnswer.

    It may take as long as the replica may to begin, and then as long as a copy may be under way.
    """
    request = _request(url, path, token)
    request.method = "POST"
    late_s = time.monotonic() + BACKUP_S_MAX + BACKUP_SENT_S_MAX
    with _answered(request, BACKUP_S_MAX + TIMEOUT_S) as response:
        while chunk := response.read(_CHUNK):
            target.write(chunk)
            if time.monotonic() > late_s:
                raise NoAnswer("it sends too slowly")
        return dict(response.headers)


def _body(response: Any, timeout_s: float) -> bytes:
    """All of a body, which may take `timeout_s` and be of `_BODY_BYTES_MAX`. Raises NoAnswer."""
    late_s, read = time.monotonic() + timeout_s, bytearray()
    while chunk := response.read1(_CHUNK):
        read += chunk
        if len(read) > _BODY_BYTES_MAX:
            raise NoAnswer("its answer is too long")
        if time.monotonic() > late_s:
            raise NoAnswer("it sends too slowly")
    return bytes(read)


def _shown(told: Any) -> Any:
    """What was told, with nothing in its texts that a terminal would obey: whoever answers may be no replica."""
    if isinstance(told, str):
        return spelled_out(told)
    if isinstance(told, dict):
        return {spelled_out(name): _shown(value) for name, value in told.items()}
    return [_shown(value) for value in told] if isinstance(told, list) else told


def _request(url: str, path: str, token: str | None) -> urllib.request.Request:
    request = urllib.request.Request(url.rstrip("/") + path)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    return request


@contextmanager
def _answered(request: urllib.request.Request, timeout_s: float) -> Iterator[Any]:
    """The replica's answer, when it is a good one. Raises NoAnswer for all else, also while it is read."""
    try:
        with _opened(request, timeout_s) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            _refuse(error)
    except urllib.error.URLError as error:
        raise _no_answer(error.reason) from None
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(error) from None


def is_live(url: str) -> bool:
    """Whether the replica runs."""
    return _is_well(url, "live")


def is_ready(url: str) -> bool:
    """Whether the replica says that it is ready to vote."""
    return _is_well(url, "ready")


def _is_well(url: str, what: str) -> bool:
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/health/{what}")
    try:
        with _opened(request, _READY_TIMEOUT_S) as response:
            return bool(response.status == http.client.OK)
    except (OSError, http.client.HTTPException):
        return False


def scan_all(
    document: ClusterDocument, prefix: str, token: str | None, timeout_s: float = TIMEOUT_S
) -> dict[str, dict[str, Collected] | str]:
    """Of every replica: its objects whose names start with `prefix`, or the words that say why it gave none."""
    return asyncio.run(_scan_all(document, prefix, token, timeout_s))


async def _scan_all(
    document: ClusterDocument, prefix: str, token: str | None, timeout_s: float
) -> dict[str, dict[str, Collected] | str]:
    transport = HttpTransport(
        document.urls,
        token=token,
        body_bytes_max=document.limits.message_bytes_max,
        tls=from_environment(),
    )
    try:
        scans = (_scan(transport, document, id, prefix, timeout_s) for id in document.urls)
        return dict(zip(document.urls, await asyncio.gather(*scans), strict=True))
    finally:
        await transport.aclose()


async def _scan(
    transport: HttpTransport, document: ClusterDocument, id: str, prefix: str, timeout_s: float
) -> dict[str, Collected] | str:
    """All pages of one replica."""
    found: dict[str, Collected] = {}
    for _ in range(_SCANS_MAX):
        batch = Batch(document.hash, (Scan(prefix, after=max(found, default="")),))
        answer = await transport.exchange(id, batch, timeout_s)
        if isinstance(answer, Unanswered):
            return answer.detail.removeprefix(f"{id}: ")
        match answer.replies:
            case (Scanned(objects=objects, more=more),):
                found |= dict(objects)
                if not more or not objects:
                    return found
            case (Refused(detail=detail),):
                return detail
            case _:
                return "its answer does not fit the question"
    return found


def _refuse(error: urllib.error.HTTPError) -> NoReturn:
    """The problem document of a status that is not 2xx; replicas that are not ready say so in one."""
    try:
        problem = _shown(json.loads(_body(error, _READY_TIMEOUT_S)))
    except (OSError, ValueError, RecursionError, NoAnswer):
        problem = None
    if 300 <= error.code < 400:
        raise NoAnswer("it redirects: give the replica's own URL")
    if not isinstance(problem, Mapping):
        raise NoAnswer(f"it answers HTTP status {error.code}")
    is_token = error.code in (http.client.UNAUTHORIZED, http.client.FORBIDDEN)
    kind = WrongToken if is_token else Refuses
    raise kind(str(problem.get("detail") or problem.get("title") or f"it answers HTTP status {error.code}"))


def _no_answer(error: object) -> NoAnswer:
    if isinstance(error, ssl.SSLError) and not isinstance(error, TimeoutError):
        return TlsFailed(error)
    if isinstance(error, ConnectionRefusedError):
        return NoAnswer("connection refused")
    if isinstance(error, TimeoutError):
        return NoAnswer("no answer in time")
    if isinstance(error, socket.gaierror):
        return HostUnknown(f"the name of its host is not known here ({error.strerror})")
    return NoAnswer(str(error) or type(error).__name__)
