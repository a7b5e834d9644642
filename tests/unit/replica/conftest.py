"""A member of a one-replica cluster and its application, on real files; requests go through ASGI, no socket needed."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.store.store import Store

Serving = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


def one_replica(limits: Limits = DEFAULTS, store: str = "") -> ClusterDocument:
    """A cluster of r1 alone: every operation needs it, and it is enough."""
    return ClusterDocument("test", (ReplicaInfo("r1", "http://127.0.0.1:7001", store=store),), limits=limits)


def small() -> ClusterDocument:
    """The document of most tests: bodies are small, so that a large one is quickly made."""
    return one_replica(
        Limits(body_bytes_max=20_000, value_bytes_max=5_000, batch_items_max=10, requests_max=10)
    )


@pytest.fixture
def document() -> ClusterDocument:
    """The same for each test."""
    return small()


@pytest.fixture
def store(tmp_path: Path, document: ClusterDocument) -> Iterator[Store]:
    """An empty store on disk."""
    folder = open_folder(tmp_path / "data", document, "r1")
    assert folder.database is not None
    opened = Store(folder.database)
    yield opened
    opened.close()
    folder.close()


def serve_from(folder: Path) -> Serving:
    """Serves a document's r1 from a folder; the client speaks to the application directly."""

    @asynccontextmanager
    async def serve(document: ClusterDocument, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        member = Member(open_folder(folder / "data", document, "r1"))
        app = create_app(member, lambda each: embedded_front_end(each, token), token)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://r1") as client,
        ):
            yield client

    return serve


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """The same from a folder of each test's own."""
    return serve_from(tmp_path)


@pytest.fixture
async def client(serving: Serving, document: ClusterDocument) -> AsyncIterator[httpx.AsyncClient]:
    """A client of r1, which serves `document`."""
    async with serving(document) as opened:
        yield opened
