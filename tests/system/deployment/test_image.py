"""The image, by the blocks of docs/how-to/deploy.md: a replica of its own, and the three of compose.yaml.

Podman and podman-compose stand in for Docker, under its name, and a root with this machine's /usr for the image that ours is
made from. All of it lives in namespaces of its own, without a network but the engine's, and ends with them.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.checkout import check_out
from tests.docs.pages import blocks_run_by
from tests.support.containers import children, make_environment, make_root, run_inside, skip_unless_root_has
from tests.system.harness import until_now

CGROUPS: Final = Path("/sys/fs/cgroup")
CONTAINERS_CONF: Final = """
[containers]
volumes = ["/usr:/usr:ro"]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "none"
tmp_dir = "{folder}/engine"
"""
"""The least that works on a machine without systemd; what crun refuses of older control groups, runc does not."""
STORAGE_CONF: Final = """
[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""
DOCKER: Final = """#!/bin/sh
if [ "$1" != compose ]; then exec podman "$@"; fi
shift
if [ "$1" = up ]; then podman-compose up -d init && podman wait source_init_1 || exit; fi
exec podman-compose "$@"
"""
"""This podman-compose knows no `service_completed_successfully`: replicas would start, end and start until init is done, and an
engine that checks the health of one meanwhile may hang."""
HOLD: Final = """
import fcntl, signal, socket, struct, sys
up = struct.pack("16sh14x", b"lo", 0x49)  # IFF_UP | IFF_LOOPBACK | IFF_RUNNING
fcntl.ioctl(socket.socket(), 0x8914, up)  # SIOCSIFFLAGS
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reaps
print("ready", flush=True)
sys.stdin.read()
"""
"""The first process of the namespaces, which live as long as it does: until its input ends, as also when the tests are killed."""
IMAGE, ALONE, COMPOSED = blocks_run_by("tests/system/deployment/test_image.py")
REPLICAS: Final = tuple(f"source_{name}_1" for name in ("r1", "r2", "r3"))
HELPERS: Final = ("/usr/lib/podman/netavark", "/usr/lib/podman/aardvark-dns")
"""Of the engine, for a network whose members know each other by name."""
TOKEN: Final = "a-token-of-the-test-" + "x" * 20
BUILD_S: Final = 240.0
DEADLINE_S: Final = 20
"""Of an operation: other work shares this machine, and containers have just been started."""
PLACES: Final = {"/run": "engine-run", "/var/lib": "engine-lib"}
"""Where the engine writes whatever it is told, and the folder of ours that is there instead."""


class Engine:
    """A container engine in namespaces of its own, by the process that holds them; its commands are `docker`'s."""

    def __init__(self, folder: Path, first: int) -> None:
        self.folder = folder
        self.first = first

    def run(self, script: str, *, at: str = "", is_checked: bool = True, timeout_s: float = 120) -> str:
        """Run a script of the shell in a folder below ours; what it printed."""
        commands = [self.folder / "bin", Path(sys.executable).parent, "/usr/sbin", "/usr/bin"]
        environment = {
            "PATH": os.pathsep.join(map(str, commands)),
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "BUILDAH_FORMAT": "docker",
        }
        script = f"cd {self.folder / at}\n{script}"
        return run_inside(self.first, script, environment, is_checked=is_checked, timeout_s=timeout_s)

    def shows(self, container: str, what: str) -> str:
        """What the engine knows of a container, by a template."""
        return self.run(f"docker inspect --format '{{{{{what}}}}}' {container}")

    def is_healthy(self, container: str) -> bool:
        """Whether the image's own check succeeds; the engine would leave asking to systemd."""
        self.run(f"docker healthcheck run {container}", is_checked=False)
        return self.shows(container, ".State.Health.Status") == "healthy"

    def await_healthy(self, *containers: str) -> None:
        """Wait until each one is; else tell what they wrote."""
        try:
            until_now(lambda: all(map(self.is_healthy, containers)), f"healthy: {', '.join(containers)}")
        except AssertionError as late:
            logs = "".join(f"docker logs --tail 20 {each} 2>&1\n" for each in containers)
            late.add_note(self.run(f"docker ps --all\n{logs}", is_checked=False))
            raise

    def status_of(self, container: str) -> dict[str, str]:
        """What the kernel says of the container's first process."""
        lines = self.run(f"cat /proc/{self.shows(container, '.State.Pid')}/status").splitlines()
        return {name: " ".join(value.split()) for name, _, value in (line.partition(":") for line in lines)}

    def asks(self, port: int, path: str, body: str = "", token: str = "") -> str:
        """The answer of a replica, and its status on a line of its own; 000 when there is none."""
        words = f"curl -s -m 30 -w '\\n%{{http_code}}' http://127.0.0.1:{port}{path}"
        words += f" -H 'Authorization: Bearer {token}'" if token else ""
        words += f" -H 'Content-Type: application/json' -d '{body}'" if body else ""
        return self.run(words, is_checked=False)

    def enqueue(self, port: int, item: str, token: str) -> str:
        """The status of the answer."""
        return self.asks(
            port, f"/v1/queues/jobs/items?deadline_s={DEADLINE_S}", f'{{"item": "{item}"}}', token
        ).splitlines()[-1]

    def dequeue(self, port: int, token: str) -> str:
        """The answer."""
        return self.asks(port, f"/v1/queues/jobs/dequeue?deadline_s={DEADLINE_S}", "{}", token)


def hold(folder: Path) -> subprocess.Popen[str]:
    """Start the process that holds the namespaces; the folder gets what the engine is told."""
    (folder / "containers.conf").write_text(CONTAINERS_CONF.format(folder=folder))
    (folder / "storage.conf").write_text(STORAGE_CONF.format(folder=folder))
    for name in ("bin", "networks", *PLACES.values()):
        (folder / name).mkdir()
    (folder / "bin/docker").write_text(DOCKER)
    (folder / "bin/docker").chmod(0o755)
    mounts = " && ".join(f"mount --bind {folder / ours} {place}" for place, ours in PLACES.items())
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc"]
    command += ["sh", "-ec", f'{mounts} && exec "$@"', "sh", sys.executable, "-c", HOLD]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def first_of(holder: subprocess.Popen[str]) -> int:
    """The process of the namespaces that all others are entered by; skips where the machine allows none."""
    assert holder.stdout is not None
    if holder.stdout.readline() != "ready\n":
        pytest.skip(f"no namespaces can be made here: {holder.communicate(timeout=5)[1]}")
    [first] = children(holder.pid)
    return first


def make_base(engine: Engine, source: Path) -> None:
    """The image that ours is made from, under the name by which the Dockerfile asks for it; it holds all that pip will want."""
    root = engine.folder / "root"
    make_root(root)
    packages = str(root / "packages")
    wanted = tomllib.loads((source / "pyproject.toml").read_text())["build-system"]["requires"]
    lock = str(source / "requirements-server.lock")
    make_environment(
        root,
        "opt/python",
        ["download", "--no-deps", "--dest", packages, "--require-hashes", "-r", lock],
        ["download", "--no-deps", "--dest", packages, *wanted],
        keeps_pip=True,
    )
    settings = ("PATH=/opt/python/bin:/usr/sbin:/usr/bin", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/packages")
    changes = " ".join(f"--change 'ENV {setting}'" for setting in settings)
    [version] = re.findall(r"^ARG PYTHON=(\S+)$", (source / "Dockerfile").read_text(), re.MULTILINE)
    name = f"python:{version}-slim"
    engine.run(f"tar -C {root} -c . | docker import --quiet {changes} - {name}")
    tried = engine.run(
        f"docker run --rm --network none {name} python -c 'print(6 * 7)' 2>&1", is_checked=False
    )
    if tried.splitlines()[-1:] != ["42"]:
        pytest.skip(f"no container can be started here: {tried[-500:]}")


def groups() -> set[Path]:
    """The control groups of engines."""
    return {group for parent in CGROUPS.glob("**/libpod_parent") for group in parent.glob("**")}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine that has built the image from a checkout, as the page says."""
    skip_unless_root_has("podman", "podman-compose", "runc", "iptables", "unshare", *HELPERS)
    folder = tmp_path_factory.mktemp("image")
    there = groups()
    holder = hold(folder)
    try:
        engine = Engine(folder, first_of(holder))
        check_out(folder / "source")
        make_base(engine, folder / "source")
        engine.run(IMAGE.text, at="source", timeout_s=BUILD_S)
        yield engine
    finally:
        holder.communicate(timeout=30)
        for group in sorted(groups() - there, reverse=True):  # those within others first
            with contextlib.suppress(OSError):  # busy: its container is another run's
                group.rmdir()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def alone(engine: Engine) -> Engine:
    """With a replica of its own as the page says, r1, on port 8000."""
    (engine.folder / "alone").mkdir()
    (engine.folder / "alone/token").write_text(f"{TOKEN}\n")
    engine.run(ALONE.text, at="alone")
    engine.await_healthy("r1")
    return engine


@pytest.fixture(scope="module")
def composed(engine: Engine) -> Engine:
    """With the replicas of compose.yaml as the page says, on the ports 8001 to 8003."""
    engine.run(COMPOSED.text, at="source")
    engine.await_healthy(*REPLICAS)
    return engine


def test_replica_of_its_own_serves_who_has_the_token(alone: Engine) -> None:
    assert alone.asks(8000, "/v1/status").endswith("401")
    assert alone.enqueue(8000, "fold", TOKEN) == "200"
    assert '"fold"' in alone.dequeue(8000, TOKEN)


def test_replica_is_no_root_and_even_root_writes_nowhere_but_to_its_data(alone: Engine) -> None:
    assert alone.status_of("r1")["Uid"] == "10001 10001 10001 10001"
    tried = "for d in / /config /opt/quorate /data; do touch $d/x 2>/dev/null && echo $d; done; rm /data/x"
    assert alone.run(f"docker exec --user 0 r1 sh -c '{tried}'") == "/data"


def test_stopped_replica_ends_well_and_keeps_what_it_has(alone: Engine) -> None:
    assert alone.enqueue(8000, "iron", TOKEN) == "200"
    alone.run("docker stop r1")
    assert alone.shows("r1", ".State.ExitCode") == "0"  # and not 137, as when it had to be killed
    alone.run("docker start r1")
    alone.await_healthy("r1")
    assert '"iron"' in alone.dequeue(8000, TOKEN)


def test_replica_whose_data_is_not_its_own_ends_at_once(engine: Engine) -> None:
    """As the page says of its block without `chown`."""
    (engine.folder / "foreign").mkdir()
    (engine.folder / "foreign/token").write_text(f"{TOKEN}\n")
    kept = [line for line in ALONE.text.splitlines() if not line.startswith("chown ")]
    script = "\n".join(kept).replace("-d --name r1", "--rm")
    said = engine.run(f'{script} 2>&1 || echo "ended with $?"', at="foreign")
    assert "/data" in said
    assert "Traceback" not in said
    assert said.splitlines()[-1] == "ended with 2"


def test_composed_replicas_are_one_cluster(composed: Engine) -> None:
    token = (composed.folder / "source/quorate-token").read_text().strip()
    assert composed.asks(8001, "/v1/status").endswith("401")
    assert composed.enqueue(8001, "fold", token) == "200"
    assert '"fold"' in composed.dequeue(8002, token)


def test_composed_replicas_are_confined(composed: Engine) -> None:
    for name in REPLICAS:
        status = composed.status_of(name)
        assert status["Uid"] == "10001 10001 10001 10001"
        assert (status["CapBnd"], status["NoNewPrivs"]) == ("0" * 16, "1")
        assert composed.run(f"docker exec {name} sh -c 'touch /x 2>/dev/null || echo refused'") == "refused"


def test_composed_cluster_outlives_a_killed_replica_and_a_restart_of_all(composed: Engine) -> None:
    token = (composed.folder / "source/quorate-token").read_text().strip()
    composed.run(f"docker kill {REPLICAS[0]}")
    assert composed.enqueue(8002, "iron", token) == "200"
    composed.run("docker compose down", at="source")
    composed.run("docker compose up -d", at="source")
    composed.await_healthy(*REPLICAS)
    assert '"iron"' in composed.dequeue(8001, token)
