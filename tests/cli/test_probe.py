"""Questions to single replicas: where the token goes, and where it does not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from quorate.cli.probe import NoAnswer, TlsFailed, WrongToken, get

WAIT_S = 60


class Server(HTTPServer):
    """Answers every GET alike, and notes what credentials came."""

    status = 200
    location = ""

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
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

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
