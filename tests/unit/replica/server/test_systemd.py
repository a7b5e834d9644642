"""A service manager that asks to be told hears of a start once requests are answered; without one nothing is said."""

import logging
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.measurement.faults.held_ports import HeldPort
from quorate.replica.server.systemd import tell_ready
from tests.unit.replica.server.test_server import SCRIPT, START_TIMEOUT_S


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.settimeout(START_TIMEOUT_S)
    heard.bind(str(tmp_path / "notify"))
    return heard


@pytest.mark.slow
def test_replica_says_that_it_is_ready_once_it_answers(
    tmp_path: Path, manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    held = HeldPort.chosen()
    document = ClusterDocument("test", (ReplicaInfo("r1", f"http://127.0.0.1:{held.number}"),))
    text = msgspec.json.encode(document).decode()
    with manager, subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "data"), text]) as process:
        try:
            assert manager.recv(100) == b"READY=1"
            url = f"{document.urls['r1']}/v1/health/live"
            assert httpx.get(url, trust_env=False, timeout=START_TIMEOUT_S).status_code == 200
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            assert process.wait(START_TIMEOUT_S) == 0
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract names")
def test_name_with_an_at_sign_is_an_abstract_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.settimeout(START_TIMEOUT_S)
        heard.bind("")  # Linux chooses a free abstract name.
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + heard.getsockname()[1:].decode())
        tell_ready()
        assert heard.recv(100) == b"READY=1"


def test_who_does_not_hear_it_keeps_no_replica_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    with caplog.at_level(logging.WARNING):
        tell_ready()
    assert "was not told of the start" in caplog.text
    monkeypatch.delenv("NOTIFY_SOCKET")
    caplog.clear()
    tell_ready()
    assert not caplog.records
