"""From what a user has (a document, a path, a URL, a token) to a connected client.

Owns the checks of `connect`'s arguments and the wiring: document, transport, driver, history. Must not know operations.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ...api_specs.cluster import BadCluster as BadDocument
from ...api_specs.cluster import ClusterDocument, parse
from ...api_specs.configuration import check_same_cluster, in_force
from ...api_specs.tokens import token_problem
from ..errors import BadCluster, BadInput, QuorateError, Unavailable
from ..protocol.reconfiguration import Steps
from ..transport.driver import Driver, new_site
from ..transport.following import Following
from ..transport.http_transport import HttpTransport, fetch_cluster
from ..transport.operator import Operator
from ..transport.ports import Traces
from ..transport.tls import SYSTEM_TRUST, ClientTls
from .blocking import Client
from .calls import check_seconds
from .client import AsyncClient, check_deadline
from .history import History

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

DEADLINE_S: Final = 5.0
"""What an operation gets where nobody says otherwise, and the cluster allows it."""
TRACES: Final = "QUORATE_TRACES"
"""The environment's variable for the URL of a collector of traces."""
_HOST_AND_PORT: Final = re.compile(r"[A-Za-z0-9.-]+:[0-9]+")

Cluster: TypeAlias = "ClusterDocument | str | os.PathLike[str] | Sequence[str]"
"""A cluster file, the path of one, or the URL of any one replica; or the URLs of several, of which one must answer."""


class Recipe(Struct, frozen=True):
    """All that a client is made from, so that a forked child can make its own."""

    cluster: ClusterDocument | str | os.PathLike[str] | tuple[str, ...]
    endpoints: Mapping[str, str]
    token: str | None
    deadline_s: float | None
    tls: ClientTls = SYSTEM_TRUST
    forward: bool = True
    tracer_provider: "TracerProvider | None" = None
    traces: str = ""
    """The URL of a collector, where no provider is given."""

    def __repr__(self) -> str:
        return f"Recipe({self.cluster!r})"  # without the token

    async def client(self, history: History | None, document: ClusterDocument | None = None) -> AsyncClient:
        """A client of its own, on the running event loop; of `document` when it is known already."""
        document = document or await self._document()
        deadline_s = self.deadline_s
        if deadline_s is None:
            deadline_s = min(DEADLINE_S, document.limits.deadline_s_max)
        check_deadline(deadline_s, document.limits)
        driver = await self._driver(document)
        return AsyncClient(driver, deadline_s=deadline_s, history=history)

    async def operate(
        self, steps: Callable[[ClusterDocument], Steps], *, rate: float | None = None
    ) -> ClusterDocument:
        """Have the steps of a change done, which begin with the configuration that is known: the one in force then. No more than `rate` objects a second
        are carried. Raises RefusedByReplicas, and BadCluster where the change cannot be made."""
        driver = await self._driver(await self._document())
        operator = Operator(driver, token=self.token, tls=self.tls, urls=self.endpoints, rate=rate)
        try:
            await operator.check_releases()
            return await operator.run(steps(driver.document))
        except BadDocument as error:
            raise BadCluster(str(error)) from None
        finally:
            await operator.aclose()
            await driver.aclose()

    async def _driver(self, document: ClusterDocument) -> Driver:
        _check_endpoints(document, self.endpoints)
        if any(urlsplit(url).scheme == "https" for url in {**document.urls, **self.endpoints}.values()):
            self.tls.context()  # Files that cannot be used are told now, not once by each operation that waited in vain.
        transport = HttpTransport(
            document.urls,
            endpoints=self.endpoints,
            token=self.token,
            body_bytes_max=document.limits.message_bytes_max,
            tls=self.tls,
        )
        driver = Driver(
            document,
            transport=transport,
            forwarder=transport if self.forward else None,
            site=new_site(self.token),
            seed=secrets.randbits(64),
        )
        driver.following = Following(
            document.name,
            transport.configuration,
            lambda told: driver.reconfigure(_of_same_cluster(driver.document, told)),
        )
        try:
            await driver.following.ask(document.votes)
        except BaseException:
            await driver.aclose()
            raise
        if self.tracer_provider is not None or self.traces:
            driver.follow(_tracing(self.tracer_provider, self.traces))
        return driver

    async def _document(self) -> ClusterDocument:
        if isinstance(self.cluster, ClusterDocument):
            return self.cluster
        if isinstance(self.cluster, tuple):
            return await self._fetched(self.cluster)
        place = os.fspath(self.cluster)
        if is_url(place):
            return await self._fetched((place,))
        try:
            text = await asyncio.to_thread(Path(place).read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            advice = f"; for a replica's URL write http://{place}" if _HOST_AND_PORT.fullmatch(place) else ""
            if isinstance(error, IsADirectoryError):
                advice = "; name the file itself, as cluster.toml in that folder"
            raise BadCluster(f"cannot read the cluster file {place}: {error}{advice}") from None
        try:
            return parse(text, place)
        except BadDocument as error:
            raise BadCluster(str(error)) from None

    async def _fetched(self, urls: tuple[str, ...]) -> ClusterDocument:
        """What the first of these tells that has something to tell: all are asked at once, for some may be down."""
        timeout_s = DEADLINE_S if self.deadline_s is None else self.deadline_s
        asked = [
            asyncio.ensure_future(
                fetch_cluster(
                    url,
                    token=self.token,
                    timeout_s=timeout_s,
                    tls=self.tls,
                    endpoints=self.endpoints,
                    named=urls,
                )
            )
            for url in urls
        ]
        errors: list[QuorateError] = []
        try:
            for answered in asyncio.as_completed(asked):
                try:
                    return await answered
                except QuorateError as error:
                    errors.append(error)
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        refused = next((error for error in errors if not isinstance(error, Unavailable)), None)
        raise refused or Unavailable("; ".join(map(str, errors)), definite=True)


def _of_same_cluster(here: ClusterDocument, told: ClusterDocument) -> ClusterDocument:
    """The configuration that was told, with what else the file says. Raises BadCluster."""
    try:
        check_same_cluster(here, told)
    except BadDocument as error:
        raise BadCluster(str(error)) from None
    return in_force(here, told)


class Connecting:
    """What `connect_async` returns: `await` it for a client, or use it in `async with`, which closes the client too."""

    def __init__(self, recipe: Recipe, history: History | None) -> None:
        self._recipe: Final = recipe
        self._history: Final = history
        self._client: AsyncClient | None = None

    def __await__(self) -> Generator[object, None, AsyncClient]:
        return self._recipe.client(self._history).__await__()

    async def __aenter__(self) -> AsyncClient:
        self._client = await self
        return self._client

    async def __aexit__(self, *_: object) -> None:
        assert self._client is not None, "entered before"
        await self._client.aclose()


def connect(
    cluster: Cluster,
    *,
    endpoints: Mapping[str, str] | None = None,
    token: str | None = None,
    tls: ClientTls | None = None,
    history: str | os.PathLike[str] | History | None = None,
    deadline_s: float | None = None,
    forward: bool = True,
    tracer_provider: "TracerProvider | None" = None,
) -> Client:
    """A blocking client, for any number of threads. It asks the replicas once which configuration is in force, for half a second where none answers.

    `endpoints` maps replica ids to URLs that override the document's (proxies, tunnels); `token` is the bearer token of
    replicas that want one; `tls` says whom to trust at https:// URLs, and which certificate to show (left out: what the
    system trusts, and none); `history` is a file to which every operation is recorded; `deadline_s` is what an operation
    gets, in seconds, unless a call says otherwise (left out: 5, or the cluster's deadline_s_max where that is less). With `forward` False this client decides all its operations itself:
    slower where many processes take from one queue, but no dequeue's outcome hangs on one replica's life.
    `tracer_provider` (of OpenTelemetry, extra `otel`) has every operation traced across the replicas; left out, the URL of a
    collector in QUORATE_TRACES has, else nothing is.
    Raises BadInput for arguments, BadCluster for a document that cannot be used; for a URL also Unavailable and
    RefusedByReplicas.
    """
    recipe = _recipe(cluster, endpoints, token, deadline_s, tls, forward)
    return Client(replace(recipe, tracer_provider=tracer_provider).client, _history(history))


def connect_async(
    cluster: Cluster,
    *,
    endpoints: Mapping[str, str] | None = None,
    token: str | None = None,
    tls: ClientTls | None = None,
    history: str | os.PathLike[str] | History | None = None,
    deadline_s: float | None = None,
    forward: bool = True,
    tracer_provider: "TracerProvider | None" = None,
) -> Connecting:
    """An asyncio client, for any number of tasks: `async with connect_async(…) as client`. Arguments as `connect`."""
    recipe = _recipe(cluster, endpoints, token, deadline_s, tls, forward)
    return Connecting(replace(recipe, tracer_provider=tracer_provider), _history(history))


def is_url(text: str) -> bool:
    """Whether it is the URL of a server, rather than a path."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _recipe(
    cluster: Cluster,
    endpoints: Mapping[str, str] | None,
    token: str | None,
    deadline_s: float | None,
    tls: ClientTls | None,
    forward: bool,
) -> Recipe:
    if token is not None and (wrong := token_problem(token)) is not None:
        raise BadInput(f"the token cannot be sent: {wrong}; use printable ASCII without blanks")
    for replica, url in (endpoints or {}).items():
        if not is_url(url):
            raise BadInput(f"endpoints: {replica}: {url!r} must look like http://host:port")
    if deadline_s is not None:
        check_seconds("deadline_s", deadline_s)
    return Recipe(
        _places(cluster),
        dict(endpoints or {}),
        token,
        deadline_s,
        tls or SYSTEM_TRUST,
        forward,
        traces=os.environ.get(TRACES, ""),
    )


def _places(cluster: Any) -> ClusterDocument | str | os.PathLike[str] | tuple[str, ...]:
    if isinstance(cluster, ClusterDocument | str | os.PathLike):
        return cluster
    urls = tuple(cluster) if isinstance(cluster, Iterable) else ()
    if not urls or not all(isinstance(url, str) and is_url(url) for url in urls):
        raise BadInput(
            f"the cluster is {cluster!r}: use its file, a replica's URL such as http://host:port, or a list of URLs"
        )
    return urls


def _tracing(provider: "TracerProvider | None", url: str) -> Traces:
    """Raises BadInput where what it takes is not installed, or the URL is none."""
    if provider is None and not is_url(url):
        raise BadInput(f"{TRACES}: {url!r} must look like http://host:4318")
    try:
        from ..tracing.otlp import provider_to  # noqa: PLC0415
        from ..tracing.spans import Tracing  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadInput(f"traces need the package {error.name}: pip install 'quorate[otel]'") from None
    if provider is not None:
        return Tracing(provider)
    own = provider_to(url, "quorate-client")
    return Tracing(own, own)


def _check_endpoints(document: ClusterDocument, endpoints: Mapping[str, str]) -> None:
    unknown = ", ".join(sorted(endpoints.keys() - document.urls.keys()))
    if unknown:
        raise BadInput(f"endpoints: the cluster has no replica {unknown}: use {', '.join(document.urls)}")


def _history(history: str | os.PathLike[str] | History | None) -> History | None:
    return history if history is None or isinstance(history, History) else History(history)
