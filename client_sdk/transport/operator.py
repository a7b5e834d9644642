"""Carries out the steps of a change of the cluster's configuration: with a front end, and over HTTP with the replicas.

Owns how replicas are told and asked. Must not know the steps (`quorate.client_sdk.protocol.reconfiguration`). Whoever gives up in the middle leaves a change
that anybody can go on with.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ...adts.types.catalogue import CONFIGURATION
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import FOLLOWING, UNTOLD
from ..errors import RefusedByReplicas
from ..protocol.core.values import Failed, Operation, Outcome, Read, Unanswered
from ..protocol.reconfiguration import (
    Ask,
    CarryAll,
    Holding,
    Look,
    Looked,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
    needs,
)
from .driver import Driver
from .http_answer import HttpAnswer, HttpClient, message, problem_in, refusal
from .http_transport import quick_client
from .tls import SYSTEM_TRUST, ClientTls

CONFIGURATION_PATH: Final = "/v1/admin/configuration"
ANSWER_S: Final = 2.0
"""How long replicas have to answer."""
GRACE_S: Final = 0.3
"""From when both are in force: operations that were sent before go on under both. One that outlasts a whole change may have to be decided."""
LATE_S: Final = 0.3
"""How long one that hangs is waited for at first, once most have answered what takes all about as long."""
PAGE_BYTES_MAX: Final = 8 * 1024 * 1024

_Answer = TypeVar("_Answer")


class _Forbidden(Unanswered, frozen=True, gc=False):
    """The replica does not take the token, or not for this."""


class _InConfiguration(Struct, frozen=True):
    """See `quorate.replica.api.admin_api`."""

    epoch: int
    replica: str = ""


class _Page(Struct, frozen=True):
    epoch: int
    objects: tuple[str, ...]
    more: bool
    keys: int
    awaits: tuple[str, ...] = ()
    replica: str = ""
    cluster: str = ""
    store: str = ""
    voted: bool = False


_Told = TypeVar("_Told", _InConfiguration, _Page)
_DECODE_EPOCH: Final = msgspec.json.Decoder(_InConfiguration).decode
_DECODE_PAGE: Final = msgspec.json.Decoder(_Page).decode


class Pace:
    """Places in time, in seconds, for things of which `per_s` may begin in a second; without, for any number. Those that come late are not made up for."""

    def __init__(self, per_s: float | None) -> None:
        self._apart_s: Final = 0.0 if per_s is None else 1 / per_s
        self._next_s = 0.0

    def wait_s(self, now_s: float, count: int) -> float:
        """How long the next ones have to wait, which begin together: so many places are theirs."""
        begins_s = max(self._next_s, now_s)
        self._next_s = begins_s + count * self._apart_s
        return begins_s - now_s


class Patience:
    """How long those are waited for that are later than most, in seconds: longer each time that a step has to be repeated, since they may be far away,
    and needed."""

    def __init__(self) -> None:
        self.late_s = LATE_S

    def repeated(self) -> None:
        """What came of a step was not enough."""
        self.late_s = min(2 * self.late_s, ANSWER_S)

    def went_on(self) -> None:
        """Another step is next."""
        self.late_s = LATE_S


class Operator:
    """One who changes the configuration, from the front end of `driver`; `token` needs the scopes admin and write. `urls` override those of members;
    no more than `rate` objects a second are carried, on average of groups that are carried together."""

    def __init__(
        self,
        driver: Driver,
        *,
        token: str | None,
        tls: ClientTls = SYSTEM_TRUST,
        urls: Mapping[str, str] | None = None,
        rate: float | None = None,
    ) -> None:
        self._driver: Final = driver
        self._client: Final[HttpClient] = quick_client(token, tls)
        self._urls: Final = dict(urls or {})
        self._pace: Final = Pace(rate)
        self._patience: Final = Patience()
        self._both = 0
        """The last configuration that was told in which two are in force."""

    async def check_releases(self) -> None:
        """Raises RefusedByReplicas where the release of a member knows of no changes: it would stay behind, and count for nobody any more. It says itself
        that it has no such path: a 404 may as well be of a proxy that stands before a member which is down."""
        document = self._driver.document
        if document.former is not None:
            return  # It is behind already, and somebody has to bring the change to its end.
        answers = await asyncio.gather(
            *(
                self._client.request(
                    replica,
                    self._url(document, replica) + "?limit=1",
                    timeout_s=ANSWER_S,
                    bytes_max=PAGE_BYTES_MAX,
                )
                for replica in document.votes
            )
        )
        older = [
            replica
            for replica, answer in zip(document.votes, answers, strict=True)
            if isinstance(answer, HttpAnswer) and problem_in(answer) == "no-such-path"
        ]
        if older:
            raise RefusedByReplicas(
                f"{', '.join(older)}: the release there speaks {UNTOLD.told} of the replica protocol, and members and quorum choices change "
                f"with version {FOLLOWING}: update it first, or stop it if it is to leave the cluster",
                definite=True,
            )

    async def run(self, steps: Steps) -> ClusterDocument:
        """Do them all: the configuration that is in force then. Raises RefusedByReplicas where the token does not allow it, and what steps raise."""
        answer: Any = None
        while True:
            try:
                todo = steps.send(answer)
            except StopIteration as stop:
                document: ClusterDocument = stop.value
                return document
            answer = await self._done(todo)

    async def aclose(self) -> None:
        """Give up all connections; the driver is closed by whom it was given by."""
        await self._client.aclose()

    async def _done(self, todo: Todo) -> Any:
        match todo:
            case Look():
                outcome = await self._run(Read(CONFIGURATION))
                if isinstance(outcome, Failed) and outcome.reason == "refused":
                    raise RefusedByReplicas(outcome.detail, definite=True)
                return Looked(outcome, self._driver.document)
            case Perform(operation=operation):
                self._patience.went_on()
                return await self._run(operation)
            case CarryAll(operations=operations):
                self._patience.went_on()
                await asyncio.sleep(self._pace.wait_s(time.monotonic(), len(operations)))
                return await asyncio.gather(*map(self._run, operations))
            case Tell(document=document, to=to):
                self._driver.reconfigure(document)
                told = await self._of_each(
                    todo, to or document, partial(self._tell, document, to or document), self._patience.late_s
                )
                if document.former is not None and document.number > self._both:
                    self._both = document.number
                    await asyncio.sleep(GRACE_S)
                return told
            case Ask(document=document, names=names):
                # Those that hold more objects take longer to list them.
                late_s = None if names else self._patience.late_s
                return await self._of_each(todo, document, partial(self._holding, document, names), late_s)
            case Wait(seconds=seconds):
                self._patience.repeated()
                await asyncio.sleep(seconds * random.uniform(1, 1.5))
                return None

    async def _run(self, operation: Operation) -> Outcome:
        return await self._driver.run(operation, self._driver.document.limits.deadline_s_max)

    async def _of_each(
        self,
        todo: Tell | Ask,
        document: ClusterDocument,
        ask: Callable[[str], Coroutine[Any, Any, _Answer | Unanswered]],
        late_s: float | None,
    ) -> dict[str, _Answer]:
        """What members answer, by replica; those that do not are left out, and those that refuse. Raises RefusedByReplicas where nobody else answers, or
        the change cannot go on without some that refuse the token: that is no silence, which may pass."""
        asked = {replica: asyncio.create_task(ask(replica)) for replica in document.votes}
        await _most_done(asked.values(), late_s)
        answers = {replica: task.result() for replica, task in asked.items() if task.done()}
        told = {replica: answer for replica, answer in answers.items() if not isinstance(answer, Unanswered)}
        refused = [each for each in answers.values() if isinstance(each, Unanswered) and each.refused]
        forbidden = {
            replica: each.detail for replica, each in answers.items() if isinstance(each, _Forbidden)
        }
        if forbidden and needs(todo, forbidden.keys(), self._driver.document):
            raise RefusedByReplicas("; ".join(forbidden.values()), definite=True)
        if refused and not told:
            raise RefusedByReplicas(refused[0].detail, definite=True)
        return told

    def _url(self, document: ClusterDocument, replica: str) -> str:
        return self._urls.get(replica, document.urls[replica]).rstrip("/") + CONFIGURATION_PATH

    async def _tell(self, document: ClusterDocument, to: ClusterDocument, replica: str) -> int | Unanswered:
        answer = await self._client.request(
            replica,
            self._url(to, replica),
            timeout_s=ANSWER_S,
            bytes_max=PAGE_BYTES_MAX,
            body=msgspec.json.encode({"document": document}),
        )
        told = _told(replica, answer, _DECODE_EPOCH)
        return told if isinstance(told, Unanswered) else told.epoch

    async def _holding(self, document: ClusterDocument, names: bool, replica: str) -> Holding | Unanswered:
        """All pages; without `names` the first, with one. They must be of one configuration: an earlier one may have got objects after they were listed."""
        objects: list[str] = []
        epoch: int | None = None
        while True:
            query = f"?after={quote(objects[-1], safe='')}" if objects else "" if names else "?limit=1"
            answer = await self._client.request(
                replica,
                self._url(document, replica) + query,
                timeout_s=ANSWER_S,
                bytes_max=PAGE_BYTES_MAX,
            )
            page = _told(replica, answer, _DECODE_PAGE)
            if isinstance(page, Unanswered):
                return page
            if epoch not in (None, page.epoch):
                return Unanswered(f"{replica}: it went on to another configuration meanwhile")
            epoch = page.epoch
            objects += page.objects
            if not (page.more and page.objects and names):
                return Holding(
                    page.epoch, tuple(objects), page.keys, page.awaits, page.cluster, page.store, page.voted
                )


async def _most_done(tasks: Collection[asyncio.Task[Any]], late_s: float | None) -> None:
    """Wait for all; once most are done, for no more than so long between one and the next. The others are cancelled."""
    waiting = set(tasks)
    try:
        while waiting:
            patience_s = late_s if 2 * len(waiting) < len(tasks) else None
            done, waiting = await asyncio.wait(
                waiting, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                break
    finally:
        for task in waiting:
            task.cancel()


def _told(
    replica: str, answer: HttpAnswer | Unanswered, decode: Callable[[bytes], _Told]
) -> _Told | Unanswered:
    """What it says; nothing where another replica does, whom its URL reaches: that one would count twice."""
    if not isinstance(answer, HttpAnswer):
        return answer
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return _Forbidden(refusal(replica, answer).detail, refused=True)
    told = message(replica, answer, decode)
    if isinstance(told, Unanswered) or told.replica in ("", replica):
        return told
    return Unanswered(f"{replica}: its URL reaches replica {told.replica}: correct the cluster file")
