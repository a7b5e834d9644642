"""Replicas as processes, with TLS and a list of tokens; and sockets that say odd things to them."""

import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.cli.cluster.data_folder import format_data_folder
from quorate.cli.cluster.document import new_document, read_document, write_new
from quorate.client_sdk.transport.tls import ClientTls
from quorate.measurement.faults.held_ports import HeldPort
from tests.support import forked
from tests.support.certificates import Authority
from tests.unit.cli.conftest import quorate

WAIT_S: Final = 60.0


def new_token(tokens: Path, *scopes: str, name: str = "", objects: Sequence[str] = ()) -> str:
    """A token whose line is added to the list `tokens`, made by the command."""
    words = [word for scope in scopes for word in ("--scope", scope)]
    words += [word for pattern in objects for word in ("--objects", pattern)]
    done = quorate("token", "new", *words, *(["--name", name] if name else []), "--add", str(tokens))
    assert done.returncode == 0, done.stderr
    found = re.search(r"^qt_\S+$", done.stdout, re.MULTILINE)
    assert found is not None
    return found.group()


class GuardedCluster:
    """Replicas in `root`. `tls` names an authority that signed certificate and key `server` in `root`. Those that are not forked
    have a command line of their own."""

    def __init__(
        self,
        root: Path,
        *,
        replicas: int = 1,
        authority: Authority | None = None,
        mutual: Authority | None = None,
        is_forked: bool = True,
        rules: Sequence[ChoiceRule] = (),
    ) -> None:
        self.root: Final = root
        self.tokens: Final = root / "tokens"
        self.replica_token: Final = new_token(self.tokens, "replica", name="replicas")
        self.authority: Final = authority
        self._mutual: Final = mutual
        self._started: Final = forked.started if is_forked else forked.started_anew
        self.serve_options: Final[list[str]] = []
        """Further words for `quorate serve`, from the next start on."""
        self._processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        scheme = "http" if authority is None else "https"
        self._ports: Final = [HeldPort.chosen() for _ in range(replicas)]
        urls = {f"r{n}": f"{scheme}://127.0.0.1:{port.number}" for n, port in enumerate(self._ports, 1)}
        self.path: Final = root / "cluster.toml"
        write_new(self.path, new_document(urls, rules=rules))
        self.document: Final[ClusterDocument] = read_document(self.path)
        self.server: Final = None if authority is None else authority.signed("server")
        own = None if mutual is None else mutual.signed("replica")
        self.tls: Final = ClientTls(
            *map(str, (authority.own.certificate if authority else "", *(own or ("", ""))))
        )

    @property
    def url(self) -> str:
        """Of the first replica."""
        return self.document.urls["r1"]

    def environment(self, token: str | None = None) -> dict[str, Any]:
        """What a command of a caller with that token is given."""
        names = {"TLS_CA": self.tls.ca, "TLS_CERT": self.tls.certificate, "TLS_KEY": self.tls.key}
        found = {f"QUORATE_{name}": value for name, value in names.items() if value}
        return found | ({} if token is None else {"QUORATE_TOKEN": token})

    def pid(self, replica: str = "r1") -> int:
        """Of a replica's process."""
        return self._processes[replica].pid

    def log(self, replica: str = "r1") -> str:
        """What a replica said so far."""
        return (self.root / f"{replica}.log").read_text()

    def start(self, replica: str, **environment: str) -> None:
        """Start a replica; it is ready when this returns."""
        data = self.root / replica
        if not data.exists():
            format_data_folder(data, self.document, replica)
        words = [
            "serve",
            "--stop-with-parent",
            "--cluster",
            str(self.path),
            "--id",
            replica,
            "--data",
            str(data),
            *self.serve_options,
        ]
        if self.server is not None:
            words += ["--tls-cert", str(self.server.certificate), "--tls-key", str(self.server.key)]
        if self._mutual is not None:
            words += ["--tls-client-ca", str(self._mutual.own.certificate)]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
        given = self.environment(self.replica_token) | {"QUORATE_TOKENS_FILE": str(self.tokens)}
        with (self.root / f"{replica}.log").open("ab") as log:
            self._processes[replica] = self._started(
                words,
                stdin=subprocess.PIPE,  # which closes when this process ends, however that happens
                stdout=log,
                stderr=log,
                env=kept | given | environment,
            )

    def wait_ready(self) -> None:
        """Wait until all replicas that were started vote."""
        with self.client() as client:
            for replica in self._processes:
                self.wait_for(lambda url=self.document.urls[replica]: _is_ready(client, url), replica)

    def wait_for(self, told: Any, replica: str = "r1") -> None:
        """Wait until `told()` is true; fails with the log of a replica."""
        late_s = time.monotonic() + WAIT_S
        while not told():
            assert self._processes[replica].poll() is None, self.log(replica)
            assert time.monotonic() < late_s, self.log(replica)
            time.sleep(0.02)

    def client(self, token: str | None = None, headers: Mapping[str, str] | None = None) -> httpx.Client:
        """A client of its HTTP API."""
        given = dict(headers or {}) | ({} if token is None else {"Authorization": f"Bearer {token}"})
        return httpx.Client(
            base_url=self.url, headers=given, verify=self.tls.context(), trust_env=False, timeout=WAIT_S
        )

    def signal(self, number: int, replica: str = "r1") -> None:
        """Send a signal to a replica."""
        self._processes[replica].send_signal(number)

    def __enter__(self) -> Self:
        for replica in self.document.urls:
            self.start(replica)
        self.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(WAIT_S)
            assert process.stdin is not None
            process.stdin.close()


def _is_ready(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(f"{url}/v1/health/ready").status_code == 200
    except httpx.TransportError:
        return False


class Raw:
    """A socket to a replica, on which anything may be said."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None) -> None:
        host, _, port = url.partition("://")[2].partition(":")
        bare = socket.create_connection((host, int(port)), WAIT_S)
        self.socket: Final = bare if context is None else context.wrap_socket(bare, server_hostname=host)

    def say(self, data: bytes) -> bool:
        """Whether all of it could be sent."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def hear(self) -> bytes:
        """All that comes until the other side hangs up."""
        heard = b""
        try:
            while piece := self.socket.recv(65_536):
                heard += piece
        except ConnectionResetError:
            pass
        return heard

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
