"""A served replica as a process: it listens where it may, stops when told, and leaves its folder whole."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, ReplicaInfo
from quorate.measurement.faults.held_ports import HeldPort
from quorate.replica.access.token_list import one_token
from quorate.replica.data_folder.identity import Folder, FolderRefused, Identity, open_folder
from quorate.replica.server.server import Door, ServeRefused, serve
from quorate.replica.server.server import _tell_configuration as tell_configuration

SCRIPT = (
    "import sys, msgspec; from pathlib import Path; from quorate.api_specs.cluster import from_json\n"
    "from quorate.replica.logs.formats import log_to_stderr; from quorate.replica.server.server import serve\n"
    "log_to_stderr('r1')\n"
    "serve(from_json(msgspec.json.decode(sys.argv[2])), 'r1', Path(sys.argv[1]))"
)
START_TIMEOUT_S = 60


def cluster(port: int = 7001) -> ClusterDocument:
    return ClusterDocument("test", (ReplicaInfo("r1", f"http://127.0.0.1:{port}"),))


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        assert time.monotonic() < deadline, "the replica did not start"
        try:
            if (
                httpx.get(f"{url}/v1/health/ready", timeout=START_TIMEOUT_S, trust_env=False).status_code
                == 200
            ):
                return
        except httpx.TransportError:
            time.sleep(0.02)


@pytest.mark.slow
def test_served_replica_answers_and_stops_at_sigterm_with_success(tmp_path: Path) -> None:
    held = HeldPort.chosen()
    document = cluster(held.number)
    url = document.urls["r1"]
    text = msgspec.json.encode(document).decode()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), text], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until_ready(url)
        with httpx.Client(base_url=url, trust_env=False) as client:
            assert client.post("/v1/queues/q/items", json={"item": 1}).json() == {"enqueued": 1}
            assert "server" not in client.get("/v1/status").headers
            with pytest.raises(FolderRefused, match="in use"):
                open_folder(tmp_path, document, "r1")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=START_TIMEOUT_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "INFO replica=r1 quorate.replica.server.server: replica r1 has stopped" in errors
    assert not list(tmp_path.glob("*-wal")), "the write-ahead log is folded in at a clean stop"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "replica1.example"])
def test_address_that_others_reach_needs_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(ServeRefused, match=r"set a token \(QUORATE_TOKEN\)"):
        serve(cluster(), "r1", tmp_path, door=Door(host))
    with pytest.raises(ServeRefused, match="in the clear"):
        serve(cluster(), "r1", tmp_path, door=Door(host), access=one_token("t"))
    open_folder(tmp_path, cluster(), "r1").abandon()


def test_a_file_that_differs_from_what_is_in_force_is_named_at_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also a fallback, by which a store would vote all the same."""
    rule = ChoiceRule("queue/*", fallback=Fallback(live_below=3))
    members = tuple(ReplicaInfo(f"r{n}", f"http://r{n}:1") for n in (1, 2, 3))
    chosen = ClusterDocument("c", members, (rule,), epoch=2)
    for after_s, expected in ((10.0, 0), (60.0, 1)):
        edited = replace(rule, fallback=Fallback(live_below=3, after_s=after_s))
        file = ClusterDocument("c", members, (edited,))
        tell_configuration(Folder(Path(), None, file, Identity("c", "r1", "s", 8), None, chosen=chosen))
        assert caplog.text.count("queue/*: fallback: after_s = 60, and 10 then") == expected
