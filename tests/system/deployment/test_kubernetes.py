"""The manifests for Kubernetes: that they are of its form, fit each other, the product and their page, and format no lost volume.

No cluster is here: the schemas are those of Kubernetes's own OpenAPI document, and the page's `kubectl` is a program that notes its words.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from quorate import __version__
from quorate.api_specs.limits import STOP_S_MAX, Capacity
from quorate.cli.cluster.document import read_document
from tests.docs.pages import ROOT, blocks_run_by
from tests.system.deployment import kubernetes_schema

PAGE: Final = "docs/how-to/kubernetes.md"
PATH: Final = ROOT / "packaging/kubernetes/quorate.yaml"
OBJECTS: Final[list[dict[str, Any]]] = list(yaml.safe_load_all(PATH.read_text()))
SCHEMA: Final[dict[str, Any]] = json.loads(kubernetes_schema.OUT.read_text())
[SET] = [each for each in OBJECTS if each["kind"] == "StatefulSet"]
POD: Final[dict[str, Any]] = SET["spec"]["template"]["spec"]
[REPLICA] = POD["containers"]
SERVICES: Final = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "Service"}
FILES, START, AFTER, REPLACE, WRITE_DOWN = [
    block for block in blocks_run_by("tests/system/deployment/test_kubernetes.py") if block.page == PAGE
]
KUBECTL: Final = """#!/bin/sh
printf '%s\\n' "$*" >> kubectl.txt
"""
GI: Final = 1024**3


def complaints(manifest: dict[str, Any]) -> list[str]:
    """What Kubernetes would not take."""
    schema = {**SCHEMA, "$ref": f"#/$defs/{manifest['kind']}"}
    found = jsonschema_rs.Draft202012Validator(schema).iter_errors(manifest)
    return [f"{'/'.join(map(str, each.instance_path))}: {each.message}" for each in found]


@pytest.mark.parametrize("manifest", OBJECTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_manifest_is_of_the_form_that_kubernetes_asks_for(manifest: dict[str, Any]) -> None:
    assert manifest["kind"] in kubernetes_schema.KINDS
    assert complaints(manifest) == []


def test_what_kubernetes_does_not_know_is_told() -> None:
    [wrong] = yaml.safe_load_all(yaml.safe_dump(SET).replace("periodSeconds", "periodSecond", 1))
    assert any("'periodSecond' was unexpected" in each for each in complaints(wrong))
    [wrong] = yaml.safe_load_all(yaml.safe_dump(SET).replace("replicas: 3", "replicas: three"))
    [told] = complaints(wrong)
    assert told.startswith('spec/replicas: "three" is not of types')


def test_everything_lies_in_the_namespace_and_goes_by_the_same_label() -> None:
    [namespace] = [each["metadata"]["name"] for each in OBJECTS if each["kind"] == "Namespace"]
    assert {each["metadata"].get("namespace", namespace) for each in OBJECTS} == {namespace}
    label = SET["spec"]["template"]["metadata"]["labels"]
    [budget] = [each["spec"] for each in OBJECTS if each["kind"] == "PodDisruptionBudget"]
    spread = [
        *POD["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"],
        *POD["topologySpreadConstraints"],
    ]
    selectors = [SET["spec"]["selector"], budget["selector"], *(each["labelSelector"] for each in spread)]
    assert [each["matchLabels"] for each in selectors] == [label] * 4
    assert SERVICES["api"]["selector"] == SERVICES["pods"]["selector"] == label
    assert budget["maxUnavailable"] == 1


def test_each_replica_has_a_service_that_reaches_it_before_it_is_ready() -> None:
    pods = [f"{SET['metadata']['name']}-{n}" for n in range(SET["spec"]["replicas"])]
    own = {name: spec for name, spec in SERVICES.items() if name not in {"api", "pods"}}
    assert [spec["selector"] for spec in own.values()] == [
        {"statefulset.kubernetes.io/pod-name": pod} for pod in pods
    ]
    assert all(spec["publishNotReadyAddresses"] for spec in own.values())
    assert "publishNotReadyAddresses" not in SERVICES["api"]
    assert SERVICES[SET["spec"]["serviceName"]]["clusterIP"] == "None"
    # In order, they would wait for each other for ever.
    assert SET["spec"]["podManagementPolicy"] == "Parallel"


def test_volumes_are_kept_and_have_room_for_a_backup() -> None:
    [claim] = SET["spec"]["volumeClaimTemplates"]
    assert set(SET["spec"]["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    room = int(claim["spec"]["resources"]["requests"]["storage"].removesuffix("Gi")) * GI
    bound = int(environment()["QUORATE_DISK_BYTES_MAX"]["value"])
    assert 2 * bound + Capacity().disk_free_min < room
    mounted = {each["name"] for each in REPLICA["volumeMounts"]}
    assert mounted == {claim["metadata"]["name"], *(each["name"] for each in POD["volumes"])}


def test_probes_ask_what_there_is_and_only_readiness_asks_for_a_vote() -> None:
    paths = json.loads((ROOT / "api_specs/openapi.json").read_text())["paths"]
    probes = {kind: REPLICA[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/v1/health/live",
        "liveness": "/v1/health/live",
        "readiness": "/v1/health/ready",
    }
    assert all(probe["path"] in paths and probe["scheme"] == "HTTPS" for probe in probes.values())
    [port] = REPLICA["ports"]
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert {each["port"] for spec in SERVICES.values() for each in spec["ports"]} == {port["containerPort"]}


def test_a_replica_is_confined_runs_as_the_images_user_and_has_time_to_end() -> None:
    [user] = re.findall(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert POD["securityContext"]["runAsUser"] == POD["securityContext"]["fsGroup"] == int(user)
    assert POD["securityContext"]["runAsNonRoot"]
    assert REPLICA["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["terminationGracePeriodSeconds"] > STOP_S_MAX
    assert not POD["automountServiceAccountToken"]


def test_replicas_are_started_with_options_and_variables_that_there_are() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "quorate.cli.main", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    served = REPLICA["command"][-1].partition("exec quorate serve")[2]
    options = re.findall(r"(?<= )--[\w-]+", served)
    assert len(options) > 5
    assert [option for option in options if option not in told] == []
    docs = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md") if path.name != "kubernetes.md")
    named = [name for name in environment() if name.startswith("QUORATE_")]
    assert len(named) > 3
    assert [name for name in named if f"`{name}`" not in docs and name not in told] == []


def test_the_image_is_that_of_this_release() -> None:
    assert REPLICA["image"] == f"quorate:{__version__}"


def environment() -> dict[str, dict[str, Any]]:
    """The variables of a replica, by name."""
    return {each["name"]: each for each in REPLICA["env"]}


class Followed:
    """A reader of the page, in a folder: what was made there, and the words that `kubectl` was given."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        (folder / "bin").mkdir()
        (folder / "bin/kubectl").write_text(KUBECTL)
        (folder / "bin/kubectl").chmod(0o755)
        shutil.copy(PATH, folder)

    def do(self, script: str, **variables: str) -> None:
        """Run a script of the shell here."""
        path = [str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=self.folder,
            env=os.environ | {"PATH": os.pathsep.join(path)} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def told(self) -> list[str]:
        """The words of each `kubectl` since the last time."""
        path = self.folder / "kubectl.txt"
        words = path.read_text().splitlines()
        path.unlink()
        return words

    def start_pod(self, number: int) -> str:
        """Run a pod's script, with folders in place of its volumes; the words with which it would serve."""
        script = REPLICA["command"][-1].replace("exec quorate serve", "printf '%s ' > served serve")
        places = {"/config/": f"{self.folder}/", "/data/": f"{self.folder}/data-{number}/"}
        for place, folder in places.items():
            assert place in script
            script = script.replace(place, folder)
        self.do(script, POD=f"quorate-{number}")
        return (self.folder / "served").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page has its reader make."""
    followed = Followed(tmp_path_factory.mktemp("kubernetes"))
    followed.do(FILES.text)
    return followed.folder


@pytest.fixture
def followed(made: Path, tmp_path: Path) -> Followed:
    """The same, in a folder of its own."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("bin"))
    return Followed(tmp_path)


def test_page_makes_what_the_manifests_ask_for(followed: Followed) -> None:
    namespace = SET["metadata"]["namespace"]
    ids = (followed.folder / "ids").read_text().split()
    urls = read_document(followed.folder / "cluster.toml").urls
    own = [name for name in SERVICES if name not in {"api", "pods"}]
    assert ids == list(urls) == own
    assert list(urls.values()) == [f"https://{each}.{namespace}.svc:8000" for each in ids]
    followed.do(START.text)
    words = followed.told()
    configs = {each["configMap"]["name"] for each in POD["volumes"] if "configMap" in each}
    secrets = {each["secret"]["secretName"] for each in POD["volumes"] if "secret" in each}
    assert {f"-n {namespace} create configmap {name}" for name in configs} | {
        f"-n {namespace} create secret generic {name}" for name in secrets
    } == {each.partition(" --from")[0] for each in words if "--from-file" in each}
    given = set(re.findall(r"--from-file=(\S+)", " ".join(words)))
    assert {each for each in given if not (followed.folder / each).exists()} == set()
    text = yaml.safe_dump(REPLICA)
    asked = set(re.findall(r"/(?:config|tokens|tls)/([\w.]+)", text)) - {"new"}
    assert asked | {environment()["QUORATE_TOKEN"]["valueFrom"]["secretKeyRef"]["key"]} == given


def test_pods_format_their_volumes_in_a_new_cluster_and_never_again(followed: Followed) -> None:
    stores = {each.id: each.store for each in read_document(followed.folder / "cluster.toml").replicas}
    (followed.folder / "new").write_text("yes")
    # Of a new disk, and of a format that was cut off.
    (followed.folder / "data-1/lost+found").mkdir(parents=True)
    (followed.folder / "data-1/store").mkdir()
    (followed.folder / "data-1/store/lock").touch()
    assert " --id r1 " in followed.start_pod(1)
    identity = followed.folder / "data-1/store/identity.json"
    first = identity.read_text()
    assert stores["r1"] in first
    followed.start_pod(1)
    assert identity.read_text() == first
    # As the page has it: the key is taken away, and later the volume is lost.
    (followed.folder / "new").unlink()
    shutil.rmtree(followed.folder / "data-1")
    assert "--join https://r1.quorate.svc:8000 " in followed.start_pod(1)
    assert not identity.exists()


def test_page_takes_the_key_away_that_lets_pods_format(followed: Followed) -> None:
    followed.do(START.text + AFTER.text)
    words = followed.told()
    [keys] = [each for each in words if "configmap quorate --from" in each]
    assert "--from-literal=new=" in keys
    [patch] = [each for each in words if " patch configmap quorate " in each]
    assert json.loads(patch.partition(" -p ")[2]) == [{"op": "remove", "path": "/data/new"}]


def test_page_gives_a_lost_volume_a_new_replica_and_no_key(followed: Followed) -> None:
    # What the pod would print.
    (followed.folder / "bin/kubectl").write_text(f"{KUBECTL}cat cluster.toml.old 2>/dev/null || :\n")
    shutil.copy(followed.folder / "cluster.toml", followed.folder / "cluster.toml.old")
    followed.do(REPLACE.text + WRITE_DOWN.text)
    words = followed.told()
    assert not [each for each in words if "new" in each]
    assert "--id r3 " in (served := followed.start_pod(1))
    assert "--join https://r3.quorate.svc:8000 " in served
    services = {
        each["metadata"]["name"]: each["spec"]["selector"]
        for each in yaml.safe_load_all((followed.folder / "quorate.yaml").read_text())
        if each["kind"] == "Service"
    }
    assert services["r3"] == {"statefulset.kubernetes.io/pod-name": "quorate-1"}
    assert "r1" not in services
    claim = SET["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    assert f"-n quorate delete pvc {claim}-quorate-1 --wait=false" in words
    assert [each for each in words if each.endswith("member replace r1 https://r3.quorate.svc:8000")]
