"""What every HTTP request passes first: host, origin, token, rate, load, body size; and what no response leaves without:
a form.

Owns what holds for all endpoints. Must not know any of them, but those that are open to everyone. ASGI, no framework.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...api_specs.limits import BODIES_BYTES_MAX, BODY_S_MAX, CONCURRENT_MAX, OPEN_BODY_BYTES_MAX
from ..access.authorization import OPEN_PREFIX, is_public, path_problem, scope_needed
from ..access.credentials import Credential
from ..access.refused_callers import RefusedCallers
from ..access.token_list import Access
from .cancellation import ends_before_caller_goes
from .connection_shares import origin
from .connections import body_at_hand, came_at, cycle_of
from .entry_paths import kept_path
from .fair_queue import LONG_BYTES, FairQueue
from .host_header import AllowedHosts
from .large_bodies import Arrived, LargeBodies, begin
from .problems import PROBLEM, ProblemResponse, Refusal, problem_of
from .traffic import Traffic

CALLER: Final = "quorate.caller"
"""Where a scope of ASGI holds the Credential of who asks."""
_ONCE: Final = (b"host", b"authorization", b"idempotency-key", b"content-type")
DRAIN_S: Final = 1.0
DRAIN_BYTES_MAX: Final = 1024 * 1024
"""After a refusal so much of an unread body is thrown away, so that the answer is not lost with a reset connection."""


UNPROVEN_WAIT_S: Final = 1.0
"""Who asks too often without a valid token hears of it after so long: else the next request on that connection would come at once, and to
refuse thousands a second takes as much time as to answer them."""


class _Gone(Exception):
    """The client went away."""


class _Unproven(Refusal):
    """The refusal of a caller who asks too often without a valid token."""

    def __init__(self, detail: str, wait_s: int) -> None:
        super().__init__("too-many-requests", detail, headers={"Retry-After": str(wait_s)})


class Gate:
    """ASGI middleware. A body is handed on only once it is whole and known to be within the limit; nothing of it is read
    for a caller who may not send it. `hosts` None lets every Host pass. What `is_over` says of a path is
    refused, for the replica stops; health is not asked."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        body_bytes_max: int,
        access: Access,
        traffic: Traffic,
        hosts: AllowedHosts | None = None,
        is_over: Callable[[str], bool] = lambda _: False,
        refused_callers: RefusedCallers | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app: Final = app
        self._traffic: Final = traffic
        self._access: Final = access
        self._hosts: Final = hosts
        self._is_over: Final = is_over
        self._now_s: Final = now_s
        self._body_bytes_max: Final = body_bytes_max
        self.refused_callers: Final = refused_callers or RefusedCallers()
        self.turns: Final = FairQueue()
        self._long_answers: Final = FairQueue()
        """What a thousand callers have asked for at once is not sent to all of them in one turn."""
        self.large_bodies: Final = LargeBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; lifespan events pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        body = _Body(scope, receive)

        async def noting_send(message: Message) -> None:
            nonlocal started
            if not started and (length := _length(message)) > LONG_BYTES:
                await self._long_answers.wait(None, length)
            started = True
            await send(message)

        self._traffic.under_way += 1
        self._traffic.requests += 1
        try:
            await self._pass(scope, body, noting_send)
        except _Gone:
            return
        except Exception as error:
            # The outer border: whatever goes wrong inside, known or not, leaves as a problem document (which says
            # that nothing is certain, where the error is unknown; `problem_of` logs that one).
            if isinstance(error, _Unproven) and not await _waits(body):
                return
            document = problem_of(error)
            self.refused_callers.meet(document.name, body.headers, address_of(scope.get("client")))
            if started:
                raise  # Half an answer has gone: the server can only cut the connection.
            headers = error.headers if isinstance(error, Refusal) else {}
            if body.is_unread:
                await _answer_and_close(
                    ProblemResponse(document, {**headers, "Connection": "close"}), scope, body, send
                )
            else:
                await ProblemResponse(document, headers)(scope, receive, send)
        finally:
            self._traffic.under_way -= 1
            self._traffic.bodies.give(body.turn, body.held)
            if (refused := scope.get(PROBLEM)) is not None:
                self._traffic.refuse(refused)

    async def _pass(self, scope: Scope, body: "_Body", send: Send) -> None:
        check_once(scope["headers"], body.headers)
        scope["path"] = kept_path(scope["path"], scope.get("raw_path", b""))
        caller = self.admit(scope["method"], scope["path"], body.headers)
        if caller is not None:
            scope[CALLER] = caller
        body.turn = turn_of(caller, scope.get("client"))
        if caller is None:
            self._check_open_rate(scope["path"], body.turn)
        whole, receive = b"", body.receive
        if body.is_unread:
            # What is open to everyone must leave room for the bodies of those who have a token.
            most = self._body_bytes_max if caller is not None else OPEN_BODY_BYTES_MAX
            if (found := body_at_hand(body.cycle)) is None:
                whole = await self._whole(body, most, scope["path"])
            else:
                whole = found
                body.is_unread = False
                self.check_size(len(whole), most)
                self.hold(body.turn, len(whole))
                body.held = len(whole)
            receive = Replay(whole, receive)
        at = came_at(body.cycle)
        if not self.turns.may_begin(len(whole)):
            # What is open to everyone, as health checks, does not wait for other requests of that address.
            turn = ("open", body.turn) if caller is None else body.turn
            coming = asyncio.ensure_future(self.turns.wait(turn, len(whole)))
            if not await ends_before_caller_goes(coming, body.receive):
                raise _Gone
            receive = Replay(
                whole, body.receive
            )  # Who looked whether the caller goes has taken the end of the body.
        flow = None if body.cycle is None else body.cycle.flow
        begin(Arrived(body.turn, len(whole), at, body.receive, self.large_bodies, flow))
        await self._app(scope, receive, send)

    async def _whole(self, body: "_Body", most: int, path: str) -> bytes:
        """The body, of at most so many bytes. Raises Refusal."""
        self._check_length(body.headers.get(b"content-length"), most)
        coming = asyncio.timeout(0 if self._traffic.is_ending else BODY_S_MAX)
        try:
            async with coming:
                self._traffic.coming.add(coming)
                return await self._read(body, most)
        except TimeoutError:
            if self._traffic.is_ending:
                # Of a forwarded request another copy may have been served.
                detail, is_certain = "the replica stops before the body has come whole", self._is_over(path)
                raise Refusal("stopping", detail, definite=is_certain) from None
            raise Refusal("timeout", f"the body took longer than {BODY_S_MAX:g} s") from None
        finally:
            self._traffic.coming.discard(coming)

    def admit(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> Credential | None:
        """Who asks, once it is known that they may ask that, now; None for what is open to everyone. Raises Refusal. The
        request counts as under way already."""
        if self._hosts is not None:
            self._hosts.check(headers)
        if path.endswith("\n"):
            # The framework's expressions end with $, which stands before a last line feed, too: it would serve as a path that
            # it knows what is judged here, by the whole of it, as another one.
            raise Refusal("no-such-path", "no path ends with a line feed")
        if path.startswith(OPEN_PREFIX):
            return None
        if self._is_over(path):
            raise Refusal("stopping", "the replica is stopping", headers={"Connection": "close"})
        caller = None
        if not is_public(method, path):
            if self._hosts is not None:
                self._hosts.check_site(headers)
            caller = self._caller(method, path, headers.get(b"authorization", b""))
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding != b"identity":
            # Whoever stands in front may have decoded it and seen another body than what is parsed here (RFC 9110, 15.5.16).
            shown = coding[:64].decode(errors="replace")
            detail = f"a body with Content-Encoding {shown} is not read: send it as it is"
            raise Refusal("unsupported-media-type", detail, headers={"Accept-Encoding": "identity"})
        if b";" in (content_type := headers.get(b"content-type", b"")):
            _check_charset(content_type)
        if self._traffic.under_way > CONCURRENT_MAX:
            raise Refusal("overloaded", f"{CONCURRENT_MAX} requests are under way already")
        return caller

    def hold(self, turn: Hashable, size: int) -> None:
        """Count a body, or a piece of one, of `size` bytes as held for who takes this turn, until it is let go. Raises Refusal when
        that is too much."""
        if not self._traffic.bodies.may_take(turn, size):
            detail = f"requests of {BODIES_BYTES_MAX} bytes are received at a time, and no caller has more of that than are left"
            raise Refusal("overloaded", detail)
        self._traffic.bodies.take(turn, size)

    def check_size(self, size: int, most: int | None = None) -> None:
        """Raises Refusal for a body of more than it may have: `most`, where that is less than any body may have."""
        if most is not None and most < self._body_bytes_max and size > most:
            raise Refusal("too-large", f"here a body may have {most} bytes, for none is needed")
        if size > self._body_bytes_max:
            raise Refusal("too-large", f"a body may have {self._body_bytes_max} bytes (body_bytes_max)")

    def _caller(self, method: str, path: str, header: bytes) -> Credential:
        """Who asks, once it is known that they may. Raises Refusal."""
        caller = self._access.find(header)
        if caller is None:
            unproven = self._access.unproven
            if not unproven.takes(self._now_s()):
                raise _Unproven("too many requests come without a valid token", unproven.wait_s)
            error = ', error="invalid_token"' if header else ""
            raise Refusal(
                "unauthorized",
                "this replica asks for a token, and none or another one was sent",
                headers={"WWW-Authenticate": f'Bearer realm="quorate"{error}'},
            )
        needed = scope_needed(method, path)
        if needed not in caller.scopes:
            raise lacks_scope(f"scope {needed} is needed for this, and the token does not have it", needed)
        if (problem := path_problem(path, caller, self._access.matched_by)) is not None:
            raise lacks_scope(problem)
        if not caller.bucket.takes(self._now_s()):
            raise asks_too_often(caller)
        return caller

    def _check_open_rate(self, path: str, address: Hashable) -> None:
        """Raises Refusal where an address asks too often for what needs no token. Where none is asked for at all, everything is as open."""
        if self._access.is_open:
            return
        buckets = self._access.health if path.startswith(OPEN_PREFIX) else self._access.documents
        bucket = buckets.of(address)
        if not bucket.takes(self._now_s()):
            raise _Unproven(f"an address may ask for this {buckets.rate:g} times a second", bucket.wait_s)

    def _check_length(self, length: bytes | None, most: int) -> None:
        if length is not None and length.isdigit():
            self.check_size(int(length[:19]), most)

    async def _read(self, body: "_Body", most: int) -> bytes:
        chunks: list[bytes] = []
        while body.is_unread:
            chunk = await body.next()
            self.hold(body.turn, len(chunk))
            body.held += len(chunk)
            self.check_size(body.held, most)
            chunks.append(chunk)
        return b"".join(chunks)


def check_once(sent: Collection[tuple[bytes, bytes]], headers: Mapping[bytes, bytes]) -> None:
    """Raises Refusal where a header that says where, who, what or which operation was sent twice: whoever stands in front may have looked at the other
    one. `headers` has each header of `sent` once."""
    if len(sent) == len(headers):
        return
    names = [name for name, _ in sent]
    for name in _ONCE:
        if names.count(name) > 1:
            raise Refusal("malformed", f"the header {name.decode().title()} was sent more than once")


def _check_charset(content_type: bytes) -> None:
    """Raises Refusal where a body says that it is no UTF-8: it would be read as that, whatever it says."""
    for parameter in content_type.decode("latin-1").lower().split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and (given := value.strip().strip('"')) not in ("utf-8", "utf8"):
            shown = given[:64].encode("ascii", "replace").decode()
            raise Refusal(
                "unsupported-media-type", f"a body in charset {shown} is not read: send it in UTF-8"
            )


def address_of(client: tuple[str, int] | None) -> str:
    """How a log names where a request comes from; a socket of a path has no address."""
    return "an unknown address" if client is None else client[0]


def turn_of(caller: Credential | None, client: tuple[str, int] | None) -> Hashable:
    """Who takes turns with others: a token; where none is asked for, an address."""
    if caller is not None and caller.digest:
        return caller
    return None if client is None else origin(client[0])


def lacks_scope(detail: str, needed: str = "") -> Refusal:
    """The refusal of a caller whose token is valid and does not allow this."""
    scope = f', scope="{needed}"' if needed else ""
    challenge = f'Bearer realm="quorate", error="insufficient_scope"{scope}'
    return Refusal("forbidden", detail, headers={"WWW-Authenticate": challenge})


def asks_too_often(caller: Credential) -> Refusal:
    """The refusal of a caller beyond its rate."""
    detail = f"this token may ask {caller.rate_max:g} times a second"
    return Refusal("too-many-requests", detail, headers={"Retry-After": str(caller.bucket.wait_s)})


def _length(start: Message) -> int:
    """What the beginning of an answer says of its body; 0 where it says nothing, as of a stream."""
    return next((int(value) for name, value in start["headers"] if name == b"content-length"), 0)


async def _waits(body: "_Body") -> bool:
    """Whether a caller is still there after UNPROVEN_WAIT_S."""
    waiting = asyncio.ensure_future(asyncio.sleep(UNPROVEN_WAIT_S))
    return await ends_before_caller_goes(waiting, body.receive)


async def _answer_and_close(response: ASGIApp, scope: Scope, body: "_Body", send: Send) -> None:
    """Send a refusal at once and end the connection, after the rest of the body was thrown away for a moment: a server that
    closes a connection with bytes unread resets it, and the client may lose the answer."""

    async def holding_send(message: Message) -> None:
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await response(scope, body.receive, holding_send)
    drained = 0
    try:
        async with asyncio.timeout(DRAIN_S):
            while body.is_unread and drained < DRAIN_BYTES_MAX:
                drained += len(await body.next())
    except (TimeoutError, _Gone):
        pass
    await send({"type": "http.response.body", "body": b""})


class _Body:
    """A request's body as it comes, and whether there is more of it."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.headers: Final = dict(scope["headers"])
        self.receive: Final = receive
        self.cycle: Final = cycle_of(scope)
        self.turn: Hashable = None
        self.held = 0
        """Bytes read and kept, for who takes that turn."""
        self.is_unread = (
            scope["method"] not in _BODILESS
            or b"transfer-encoding" in self.headers
            or self.headers.get(b"content-length", b"0") != b"0"
        )

    async def next(self) -> bytes:
        """The next piece."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        self.is_unread = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class Replay:
    """Hands the whole body to the application, then what the client does next (which is to go away)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive: Final = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
