"""The block of docs/how-to/deploy.md that sets up the unit, under a real systemd, and what the page says of the unit.

The systemd is the first process of a container with a root of its own: empty, but for this machine's /usr, which is mounted
there read-only, and a network of its own. Nothing of it is left on the machine.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.checkout import check_out
from tests.docs.pages import blocks_run_by
from tests.support.containers import children, make_environment, make_root, run_inside, skip_unless_root_has
from tests.system.harness import until_now

BOOT_S: Final = 60.0
URL: Final = "http://127.0.0.1:8000"


def name_of(pid: int) -> str:
    """What the process runs; nothing when it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Machine:
    """A container that has booted, by the process on this machine that is its first."""

    def __init__(self, first: int) -> None:
        self.first = first

    def run(self, script: str, *, is_checked: bool = True) -> str:
        """Run a script of the shell in it, as root; what it printed."""
        environment = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        return run_inside(self.first, f"cd /srv\n{script}", environment, is_checked=is_checked)

    def shows(self, name: str) -> str:
        """A property of the replica's unit."""
        return self.run(f"systemctl show --value --property {name} quorate@r1")

    def status(self, path: str, token: str = "") -> str:
        """The status of the replica's answer; 000 when there is none."""
        header = f"-H 'Authorization: Bearer {token}'" if token else ""
        return self.run(
            f"curl -s -m 30 -o /dev/null -w '%{{http_code}}' {header} {URL}{path}", is_checked=False
        )

    def is_ready(self) -> bool:
        """Whether the replica serves."""
        return self.status("/v1/health/ready") == "200"


def furnish(root: Path) -> None:
    """Make the container's root, with Quorate in /opt/quorate and the unit's file where the block looks for it."""
    make_root(root, "srv", "etc/systemd/system", "etc/quorate")
    etc = root / "etc"
    # With an identity it is no first boot, which would enable every service that the machine has installed.
    (etc / "machine-id").write_text(f"{os.urandom(16).hex()}\n")
    # A copy, for /usr is not mounted yet when it is looked for.
    shutil.copy("/usr/lib/os-release", etc / "os-release")
    (etc / "systemd/system/default.target").symlink_to("/usr/lib/systemd/system/multi-user.target")
    source = root.parent / "source"
    check_out(source)
    shutil.copytree(source / "packaging", root / "srv/packaging")
    lock = str(source / "requirements-server.lock")
    make_environment(
        root,
        "opt/quorate",
        ["install", "--no-deps", "--require-hashes", "-r", lock],
        ["install", "--no-deps", str(source)],
    )


def boot(root: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start the container; its name is that of no other."""
    command = ["systemd-nspawn", f"--directory={root}", f"--machine=quorate-{os.getpid()}", "--bind-ro=/usr"]
    command += ["--private-network", "--register=no", "--keep-unit", "--console=pipe", "--boot"]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def booted(container: subprocess.Popen[bytes], log: Path) -> Machine:
    """The container, as soon as its systemd has a target; skips where the machine allows no container."""
    late_s = time.monotonic() + BOOT_S
    has_begun = False
    while container.poll() is None and time.monotonic() < late_s:
        for first in children(container.pid):
            has_begun = has_begun or name_of(first) == "systemd"
            machine = Machine(first)
            if machine.run("systemctl is-active multi-user.target", is_checked=False) == "active":
                return machine
        time.sleep(0.1)
    said = log.read_text(errors="replace")[-500:]
    assert not has_begun, f"systemd began, but did not reach its target: {said}"
    pytest.skip(f"no container can be started here: {said}")


def end(container: subprocess.Popen[bytes]) -> None:
    """Shut the container down, or kill all of it."""
    firsts = children(container.pid)
    container.terminate()
    try:
        container.wait(15)
    except subprocess.TimeoutExpired:
        for first in firsts:
            os.kill(first, signal.SIGKILL)
        container.kill()
        container.wait(5)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine on which the page has been followed."""
    skip_unless_root_has("systemd-nspawn")
    folder = tmp_path_factory.mktemp("systemd")
    root, log = folder / "root", folder / "boot.log"
    furnish(root)
    container = boot(root, log)
    try:
        machine = booted(container, log)
        machine.run(SET_UP)
        for block in blocks_run_by("tests/system/deployment/test_systemd.py"):
            machine.run(block.text)
        yield machine
    finally:
        end(container)
        assert not any((root / "usr").iterdir())
        shutil.rmtree(folder)


SET_UP: Final = """
PATH=/opt/quorate/bin:$PATH
cd /etc/quorate
quorate init --out cluster.toml --replicas 1 --ports 8000
quorate token new --scope replica --name replicas --add tokens --out r1.token
quorate token new --scope read --name reader --add tokens --out /srv/reader.token
chmod 644 tokens cluster.toml
chmod 600 r1.token
"""


def test_replica_outlives_the_reload_just_after_its_start(machine: Machine) -> None:
    """The page's block ends with it."""
    until_now(machine.is_ready, "ready")
    assert (machine.shows("ActiveState"), machine.shows("NRestarts")) == ("active", "0")


def test_replica_is_ready_and_enabled(machine: Machine) -> None:
    until_now(machine.is_ready, "ready")
    assert machine.run("systemctl is-enabled quorate@r1") == "enabled"


def test_user_is_one_of_its_own_and_so_is_its_folder(machine: Machine) -> None:
    until_now(machine.is_ready, "ready")
    user = machine.run(f"stat -c %u /proc/{machine.shows('MainPID')}")
    assert 61184 <= int(user) <= 65519  # what systemd sets aside for such users
    assert machine.run("stat -L -c '%a %u' /var/lib/quorate/r1") == f"700 {user}"
    assert machine.run(f"find -L /var/lib/quorate/r1 ! -user {user}") == ""


def test_tokens_are_asked_for_and_read_again(machine: Machine) -> None:
    until_now(machine.is_ready, "ready")
    before = machine.shows("MainPID")
    assert machine.status("/v1/status") == "401"
    assert machine.status("/v1/status", machine.run("cat /srv/reader.token")) == "200"
    machine.run(
        "cd /etc/quorate; /opt/quorate/bin/quorate token new --scope read --name other --add tokens --out /srv/other.token"
        "; chmod 644 tokens; systemctl reload quorate@r1"
    )
    other = machine.run("cat /srv/other.token")
    until_now(lambda: machine.status("/v1/status", other) == "200", "the new token is taken")
    assert machine.shows("MainPID") == before


def test_killed_replica_is_restarted(machine: Machine) -> None:
    until_now(machine.is_ready, "ready")
    before, restarts = machine.shows("MainPID"), int(machine.shows("NRestarts"))
    machine.run(f"kill -9 {before}")
    until_now(lambda: machine.shows("MainPID") not in {"0", before} and machine.is_ready(), "ready again")
    assert int(machine.shows("NRestarts")) == restarts + 1


def test_stops_in_time_and_is_not_restarted_for_a_wrong_document(machine: Machine) -> None:
    until_now(machine.is_ready, "ready")
    machine.run("systemctl stop quorate@r1")
    assert machine.shows("Result") == "success"  # and not "timeout", as when it had to be killed
    machine.run(
        "cp /etc/quorate/cluster.toml /srv; echo wrong > /etc/quorate/cluster.toml; ! systemctl start quorate@r1"
    )
    until_now(lambda: machine.shows("ActiveState") == "failed", "failed")
    assert (machine.shows("ExecMainStatus"), machine.shows("NRestarts")) == ("2", "0")
    machine.run("cp /srv/cluster.toml /etc/quorate/; systemctl start quorate@r1")
    until_now(machine.is_ready, "ready with the right document")
