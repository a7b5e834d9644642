"""Questions to single replicas: where the token goes, and where it does not."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from quorate.cli.cluster.document import new_document, read_document
from quorate.cli.cluster.probe import HostUnknown, NoAnswer, TlsFailed, WrongToken, get
from quorate.cli.cluster.status import ask_all

WAIT_S = 60
PAUSE_S = 0.05


class Server(HTTPServer):
    """Answers every GET alike, and notes what credentials came."""

    status = 200
    location = ""
    body = b"{}"
    pieces = 1
    """Of one byte each besides, with a pause before each."""
    said = 1
    """So many of them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.given: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.given.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(len(self.server.body) + self.server.pieces - 1))
        self.end_headers()
        self.wfile.write(self.server.body)
        with suppress(OSError):
            for _ in range(1, self.server.pieces):
                time.sleep(PAUSE_S)
                self.wfile.write(b" ")
                self.server.said += 1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    both = Server(), Server()
    threads = [threading.Thread(target=each.serve_forever, args=(0.01,)) for each in both]
    for thread in threads:
        thread.start()
    yield both
    for each, thread in zip(both, threads, strict=True):
        each.shutdown()
        thread.join(WAIT_S)
        each.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_token_does_not_follow_a_redirect(servers: tuple[Server, Server], status: int) -> None:
    asked, elsewhere = servers
    asked.status, asked.location = status, elsewhere.url + "/v1/status"
    with pytest.raises(NoAnswer, match="redirects"):
        get(asked.url, "/v1/status", "s3cret", WAIT_S)
    assert asked.given == ["Bearer s3cret"]
    assert elsewhere.given == []


@pytest.mark.parametrize("status", [401, 403])
def test_refused_token_is_told_apart(servers: tuple[Server, Server], status: int) -> None:
    asked, _ = servers
    asked.status = status
    with pytest.raises(WrongToken):
        get(asked.url, "/v1/status", "s3cret", WAIT_S)


def test_what_does_not_speak_tls_is_not_taken_for_what_does_not_run(servers: tuple[Server, Server]) -> None:
    asked, _ = servers
    with pytest.raises(TlsFailed) as failed:
        get(asked.url.replace("http:", "https:"), "/v1/status", None, WAIT_S)
    assert "served with TLS" in failed.value.fix


def test_host_that_nobody_knows_is_no_replica_to_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(HostUnknown, match="name of its host is not known"):
        get("http://nowhere:8001", "/v1/status")
    document = tmp_path / "cluster.toml"
    document.write_text(new_document({"r1": "http://nowhere:8001"}))
    (found,) = ask_all(read_document(document))
    assert "start it" not in found.fix
    assert "cluster file" in found.fix


@pytest.mark.parametrize("status", [200, 503])
def test_answer_that_comes_by_drops_is_given_up(servers: tuple[Server, Server], status: int) -> None:
    servers[0].status, servers[0].pieces = status, 200
    with pytest.raises(NoAnswer):
        get(servers[0].url, "/v1/status", timeout_s=0.2)
    assert servers[0].said < servers[0].pieces, "it was not waited for"


@pytest.mark.parametrize("status", [200, 503])
def test_answer_that_is_nested_without_end_is_none_of_a_replica(
    servers: tuple[Server, Server], status: int
) -> None:
    servers[0].status, servers[0].body = status, b"[" * 100_000
    with pytest.raises(NoAnswer):
        get(servers[0].url, "/v1/status")


def test_answer_gives_a_terminal_nothing_to_obey(servers: tuple[Server, Server]) -> None:
    servers[0].status, servers[0].body = 409, b'{"detail": "\\u001b]0;mine\\u0007 \\u202e"}'
    with pytest.raises(NoAnswer, match=r"^\\u001b\]0;mine\\u0007 \\u202e$"):
        get(servers[0].url, "/v1/status")
    servers[0].status, servers[0].body = 200, b'{"reasons": ["\\u001b[2J"]}'
    assert get(servers[0].url, "/v1/status") == {"reasons": ["\\u001b[2J"]}
