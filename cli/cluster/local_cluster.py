"""Replicas on this machine as child processes: start, wait until ready, kill, restart, stop.

Owns the processes and the folder they live in: `cluster.toml`, one data folder and one log file for each replica. Used
by `quorate up`, by the demo and by tests. Must not know what replicas say to each other.

A child reads its standard input to the end and then stops, so that none outlives its parent, however that one ends.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from ...api_specs.cluster import ChoiceRule, ClusterDocument
from ...api_specs.limits import STOP_S_MAX
from ...measurement.faults.held_ports import LOCAL, HeldPort
from ...measurement.run.replicas import NotStarted
from ..failure import Failure
from .data_folder import format_data_folder, make_root, members_noted
from .document import DEFAULT_NAME, new_document, read_document, write_new
from .probe import is_live, is_ready

READY_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = STOP_S_MAX
HERE: Final = f"http://{LOCAL}:"
_POLL_S: Final = 0.05


def _private(path: str, flags: int) -> int:
    """Opens a file, which is its owner's alone where it is made: a log has addresses and names of tokens."""
    return os.open(path, flags, 0o600)


class PortTaken(Failure, NotStarted):
    """Somebody else listens on a replica's port."""


class LocalCluster:
    """Replicas of one cluster file as child processes. Each has its port from its first start on, also while it is dead.

    `PROGRAM` runs `quorate`. `root` holds a data folder and a log file per replica. A child is started with `token` in its environment, if given.
    `held` are the replicas' ports, in the document's order, where somebody holds them before that.
    """

    PROGRAM: ClassVar[Sequence[str]] = (sys.executable, "-m", "quorate.cli.main")

    def __init__(
        self,
        root: Path,
        document_path: Path | None = None,
        *,
        token: str | None = None,
        held: Sequence[HeldPort] = (),
    ) -> None:
        self.root: Final = root
        self.document_path: Final = document_path or root / DEFAULT_NAME
        self.document: Final[ClusterDocument] = read_document(self.document_path)
        self._token = token
        self.serve_options: Final[dict[str, list[str]]] = {}
        """Further words of `quorate serve` by replica id, from its next start on."""
        self._endpoints: Final[dict[str, Mapping[str, str]]] = {}
        self._joined: Final[dict[str, str]] = {}
        """URLs of replicas that the document does not name, or that have moved."""
        self._left: Final[set[str]] = set()
        """Those that are no members any more, or not here."""
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopped: set[str] = set()
        self._held: Final = dict(zip(self.urls, held, strict=False))

    @classmethod
    def create(
        cls,
        root: Path,
        *,
        replicas: int = 3,
        ports: Sequence[int] | None = None,
        rules: Sequence[ChoiceRule] = (),
        types: Mapping[str, str] = MappingProxyType({}),
        token: str | None = None,
    ) -> Self:
        """A new cluster in the folder `root`: its document and formatted data folders; nothing runs yet. Raises PortTaken."""
        held = [HeldPort.chosen() for _ in range(replicas)] if ports is None else [*map(_held, ports)]
        urls = {f"r{place}": f"http://{LOCAL}:{port.number}" for place, port in enumerate(held, 1)}
        make_root(root)
        write_new(root / DEFAULT_NAME, new_document(urls, rules=rules, types=types))
        cluster = cls(root, token=token, held=held)
        cluster.format_missing()
        return cluster

    @property
    def urls(self) -> dict[str, str]:
        """Base URL by replica id."""
        urls = self.document.urls | self._joined
        return {id: url for id, url in urls.items() if id not in self._left}

    @property
    def pids(self) -> dict[str, int]:
        """Process id of each replica that runs."""
        return {id: child.pid for id, child in self._children.items() if child.poll() is None}

    def data_folder(self, replica_id: str) -> Path:
        """Where a replica keeps its data."""
        return self.root / replica_id

    def log_file(self, replica_id: str) -> Path:
        """What a replica wrote to its output."""
        return self.root / f"{replica_id}.log"

    def set_endpoints(self, replica_id: str, endpoints: Mapping[str, str]) -> None:
        """Where a replica finds others instead of at their URLs, from its next start on."""
        self._endpoints[replica_id] = endpoints

    def format_missing(self) -> None:
        """Format every data folder, if none is there yet; folders that vanished are left to the replica to report, also where others came since."""
        if any(self.data_folder(id).exists() for id in self.urls):
            return
        if members_noted(self.document, self.root).number > self.document.number:
            return
        for id in self.urls:
            format_data_folder(self.data_folder(id), self.document, id)

    def start(self) -> None:
        """Start every replica that does not run."""
        for id in self.urls:
            if id not in self.pids:
                self.launch(id)

    def launch(self, replica_id: str) -> None:
        """Start a replica that does not run; it is not ready yet. Raises PortTaken."""
        id = replica_id
        self._held[id] = _held(int(self.urls[id].rpartition(":")[2]), id)
        if (former := self._children.get(id)) is not None:
            self._reap(former)
        environment = dict(os.environ)
        if self._token is not None:
            environment["QUORATE_TOKEN"] = self._token
        command = [*self.PROGRAM, "serve", "--stop-with-parent", "--id", id]
        command += ["--cluster", str(self.document_path), "--data", str(self.data_folder(id))]
        for other, url in self._endpoints.get(id, {}).items():
            command += ["--endpoint", f"{other}={url}"]
        command += self.serve_options.get(id, [])
        # A session of its own keeps a terminal's Ctrl-C away from the child: stopping is the parent's work.
        with open(self.log_file(id), "ab", opener=_private) as log:
            self._children[id] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self._stopped.discard(id)

    def go_on(self) -> tuple[set[str], set[str]]:
        """Have the members of now start, where these changed while the replicas ran: those that left and do not start, and members that do not start
        since their folder, or their URL, is not here."""
        now = members_noted(self.document, self.root)
        left = self.document.urls.keys() - now.votes.keys()
        came = {id: url for id, url in now.urls.items() if self.document.urls.get(id) != url}
        here = {id for id, url in came.items() if self.data_folder(id).exists() and url.startswith(HERE)}
        self._joined.update({id: came[id] for id in here})
        self._left.update(left, came.keys() - here)
        return left, came.keys() - here

    def join(self, replica_id: str, deadline_s: float = READY_DEADLINE_S) -> str:
        """Start a replica that is no member yet, and wait until it answers: its URL."""
        held = HeldPort.chosen()
        url = self._joined[replica_id] = f"http://{LOCAL}:{held.number}"
        self._held[replica_id] = held
        self.serve_options[replica_id] = ["--join", url]
        self.launch(replica_id)
        until = time.monotonic() + deadline_s
        while not is_live(url):
            if replica_id not in self.pids or time.monotonic() > until:
                raise Failure(f"Replica {replica_id} does not answer: {self.last_words(replica_id)}")
            time.sleep(_POLL_S)
        return url

    def remove(self, replica_id: str) -> None:
        """Kill a replica that joined, if it runs, and forget it: it is no member any more."""
        if replica_id in self.pids:
            self.kill(replica_id)
        self._joined.pop(replica_id, None)

    def ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        """Wait until every replica says that it is ready; Failure when one ended or the time is over."""
        until = time.monotonic() + deadline_s
        waiting = list(self.urls)
        while waiting:
            for id in waiting:
                if id not in self.pids:
                    raise Failure(f"Replica {id} ended while it started: {self.last_words(id)}")
            waiting = [id for id in waiting if not is_ready(self.urls[id])]
            if waiting and time.monotonic() > until:
                names = ", ".join(waiting)
                raise Failure(
                    f"Not ready after {deadline_s:g} s: {names}. Its log {self.log_file(waiting[0])} ends with: "
                    f"{self.last_words(waiting[0])}"
                )
            if waiting:
                time.sleep(_POLL_S)

    def last_words(self, replica_id: str) -> str:
        """The last line that a replica wrote to its log."""
        try:
            with self.log_file(replica_id).open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 4000))
                lines = log.read().decode(errors="replace").split("\n")
        except OSError:
            lines = []
        return next((line.strip() for line in reversed(lines) if line.strip()), "(it wrote nothing)")

    def kill(self, replica_id: str) -> None:
        """End a replica with SIGKILL: it gets no chance to tidy up."""
        self._stopped.add(replica_id)
        child = self._children[replica_id]
        child.kill()
        self._reap(child)

    def restart(self, replica_id: str, deadline_s: float = READY_DEADLINE_S) -> None:
        """Start a replica that does not run, and wait until it is ready."""
        self.launch(replica_id)
        until = time.monotonic() + deadline_s
        while not is_ready(self.urls[replica_id]):
            if replica_id not in self.pids:
                raise Failure(f"Replica {replica_id} ended while it started: {self.last_words(replica_id)}")
            if time.monotonic() > until:
                raise Failure(
                    f"Replica {replica_id} is not ready after {deadline_s:g} s: {self.last_words(replica_id)}"
                )
            time.sleep(_POLL_S)

    def died(self) -> Iterator[tuple[str, int]]:
        """Replicas that ended by themselves since the last call, with their exit codes."""
        for id, child in self._children.items():
            if id not in self._stopped and (code := child.poll()) is not None:
                self._stopped.add(id)
                yield id, code

    def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """Ask every replica to stop, and kill those that have not within the deadline."""
        self._stopped.update(self._children)
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        until = time.monotonic() + deadline_s
        for child in self._children.values():
            try:
                child.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
            self._reap(child)

    def _reap(self, child: subprocess.Popen[bytes]) -> None:
        child.wait(STOP_DEADLINE_S)
        if child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()

    def as_json(self) -> dict[str, Any]:
        """What a program needs to use, watch and kill these replicas."""
        replicas = [
            {"id": id, "url": url, "pid": self.pids.get(id), "data": str(self.data_folder(id))}
            for id, url in self.urls.items()
        ]
        return {"cluster": str(self.document_path), "replicas": replicas}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _held(port: int, replica_id: str = "") -> HeldPort:
    """One that a replica of a cluster file has, or that is chosen. Raises PortTaken where somebody listens."""
    try:
        return HeldPort.named(port)
    except OSError:
        whose, remedy = "", ", or choose others with --ports"
        if replica_id:
            whose, remedy = f" of {replica_id}", f" (perhaps {replica_id} itself, started elsewhere)"
        raise PortTaken(f"Port {port}{whose} is taken: stop what listens there{remedy}.") from None
