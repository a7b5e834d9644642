"""How Quorate is started: the Makefile, the script for a clean checkout, the image and the compose file."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import ProcessCollector

from quorate.api_specs.limits import STOP_S_MAX
from quorate.cli.cluster.document import read_document

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
REPLICAS = {name: service for name, service in COMPOSE["services"].items() if name != "init"}
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNIT = (ROOT / "packaging" / "quorate@.service").read_text()
EXPOSURE_MAX = 20
"""Of 100, as `systemd-analyze security` counts it; what a service has that sets nothing is 96."""


def test_plain_make_explains_every_target() -> None:
    help_text = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    assert re.findall(r"^make ([\w-]+)", help_text, re.MULTILINE) == targets[1].split()[1:]


def test_script_for_a_clean_checkout_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["sh", "-n", ".ci/run"], cwd=ROOT, check=True)


@pytest.mark.parametrize("name", REPLICAS)
def test_replica_service_is_confined_and_waits_for_its_store(name: str) -> None:
    service = REPLICAS[name]
    assert service["read_only"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["init"]["condition"] == "service_completed_successfully"
    assert service["environment"] == {"QUORATE_ID": name, "QUORATE_TOKEN_FILE": "/run/secrets/token"}
    assert service["volumes"] == ["config:/config:ro", f"{name}:/data"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_init_makes_a_store_for_each_replica_and_no_other() -> None:
    init = COMPOSE["services"]["init"]
    script = init["command"][-1]
    assert re.findall(r"--replica (\w+)=http://(\w+):8000", script) == [(name, name) for name in REPLICAS]
    assert init["volumes"] == ["config:/config", *(f"{name}:/stores/{name}" for name in REPLICAS)]
    assert set(COMPOSE["volumes"]) == {"config", *REPLICAS}


def test_init_gives_away_its_volumes_and_nothing_of_the_read_only_root() -> None:
    """A chown of anything else fails there, and with it the service that every replica waits for."""
    init = COMPOSE["services"]["init"]
    assert init["read_only"]
    given = re.search(r"^ *chown -R quorate:quorate ([^#\n]*)", init["command"][-1], re.MULTILINE)
    assert given is not None
    folders = [volume.partition(":")[2] for volume in init["volumes"]]
    paths = given[1].split()
    assert [path for path in paths if not fnmatch.filter(folders, path)] == []
    assert [folder for folder in folders if not any(fnmatch.fnmatch(folder, path) for path in paths)] == []


def test_init_writes_document_and_stores_once(tmp_path: Path) -> None:
    """The script itself, on folders in place of the volumes, run twice: a second `up` must leave everything as it is."""
    init = COMPOSE["services"]["init"]
    for volume in init["volumes"]:
        (tmp_path / volume.partition(":/")[2]).mkdir(parents=True)
    script = init["command"][-1].replace("quorate:quorate", f"{os.getuid()}:{os.getgid()}")
    for path in ("/config", "/stores"):
        script = script.replace(path, f"{tmp_path}{path}")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for _ in range(2):
        subprocess.run([*init["command"][:-1], script], env=environment, check=True, capture_output=True)
    document = read_document(tmp_path / "config" / "cluster.toml")
    for replica in document.replicas:
        identity = (tmp_path / "stores" / replica.id / "identity.json").read_text()
        assert replica.store
        assert replica.store in identity


def test_image_runs_as_a_user_and_asks_itself_for_its_health() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "\nUSER quorate\n" in last_stage
    health = re.search(r'CMD \["python", "-c", "(.*)"\]', last_stage)
    assert health is not None
    compile(health[1], "HEALTHCHECK", "exec")
    assert "/v1/health/ready" in health[1]


def test_token_beside_the_compose_file_stays_out_of_image_and_repository() -> None:
    """`COPY . .` would leave it in a layer of the build stage."""
    token = Path(COMPOSE["secrets"]["token"]["file"]).name
    assert token in (ROOT / ".dockerignore").read_text().split()
    assert f"/{token}" in (ROOT / ".gitignore").read_text().split()


def settings(name: str) -> list[str]:
    """All values of a setting of the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


def test_unit_gives_a_replica_the_time_to_stop_and_keeps_it_confined() -> None:
    assert float(settings("TimeoutStopSec")[0]) > STOP_S_MAX
    for setting in ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "Restart=on-failure"):
        assert f"\n{setting}\n" in UNIT
    (credential,) = settings("LoadCredential")
    assert f"QUORATE_TOKEN_FILE=%d/{credential.partition(':')[0]}" in settings("Environment")


def test_unit_leaves_what_the_metrics_of_the_process_are_read_from(tmp_path: Path) -> None:
    """With `pid`, /proc holds processes alone; then the library says nothing at all, as with this folder of one process."""
    (tmp_path / "self").symlink_to("/proc/self")
    assert list(ProcessCollector(proc=str(tmp_path), registry=None).collect()) == []
    assert settings("ProcSubset") in ([], ["all"])


def test_unit_starts_a_replica_with_options_that_there_are() -> None:
    command = settings("ExecStart")[0].split()
    assert command[1] == "serve"
    told = subprocess.run(
        [sys.executable, "-m", "quorate.cli.main", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    options = [word for word in command if word.startswith("--")]
    assert options
    assert [option for option in options if option not in told] == []


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd here")
    unit = tmp_path / "quorate@r1.service"
    unit.write_text(UNIT.replace("/opt/quorate/bin/quorate", sys.executable))
    for words in (["verify"], ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}"]):
        told = subprocess.run(
            ["systemd-analyze", *words, str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        if words == ["verify"]:
            assert told.stdout + told.stderr == ""
        assert told.returncode == 0, told.stdout + told.stderr
