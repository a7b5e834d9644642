"""A Python client and two TypeScript ones, generated from the committed document, drive three replicas with authentication on.

All drivers do the same and print what they were answered. Then two replicas are killed: an error says whether the operation
certainly had no effect. Then they are back.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.docs.pages import blocks_run_by
from tests.generated_clients import tools

TOKEN: Final = "generated-7c1f"
LANGUAGES: Final = ("python", "typescript", "axios")

pytestmark = pytest.mark.slow


def problem(name: str, status: int, *, definite: bool = True) -> dict[str, Any]:
    """What a driver reads in a problem."""
    return {"type": f"/problems/{name}", "status": status, "definite": definite}


ITEMS: Final = [{"job": 1}, "two", None]
EXPECTED: Final = {
    "queue": {"added": [2, 2, 1], "size": 3, "front": ITEMS[:1], "taken": ITEMS, "empty": []},
    "leases": {
        "seen": [[{"job": 1}, 1], [{"job": 1}, 2]],
        "lost": True,
        "reasons": ["rejected"],
        "counted": [0, 0, 1],
    },
    "register": {"swapped": [True, False, True], "value": {"is": "bob"}},
    "dictionary": {
        "put": 204,
        "stored": False,
        "swapped": True,
        "value": {"age": 37},
        "items": {"ada/1 & co": {"age": 37}},
        "kept": True,
        "deleted": 204,
        "missing": problem("not-found", 404),
    },
    "errors": {
        "reused": problem("key-reused", 422),
        "stranger": problem("unauthorized", 401),
        "named": problem("bad-name", 400),
    },
    "service": {"ready": "ready", "replicas": ["r1", "r2", "r3"], "definite": False},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three replicas that ask for the token."""
    with LocalCluster.create(tmp_path_factory.mktemp("cluster") / "root", token=TOKEN) as made:
        made.start()
        made.ready()
        yield made


class Generated(NamedTuple):
    """A generated client: the folder of it and its driver, and what its generator complained about."""

    folder: Path
    complaints: str


Clients = dict[str, Generated]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """The generated client in each language; those in TypeScript are type-checked, for they run as what is made of them."""
    python, typescript, axios = (tmp_path_factory.mktemp(name) for name in LANGUAGES)
    tools.generate_typescript(typescript)
    tools.check_typescript(typescript)
    tools.generate_axios(axios)
    tools.check_axios(axios)
    return {
        "python": Generated(python, tools.generate_python(python)),
        "typescript": Generated(typescript, ""),
        "axios": Generated(axios, ""),
    }


Drive = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def drive(clients: Clients, cluster: LocalCluster) -> Drive:
    """Runs the driver in a language through a phase, on r1."""
    programs = {
        "python": (tools.PYTHON, "drive.py"),
        "typescript": (tools.NODE, "built/drive.js"),
        "axios": (tools.NODE, "built/drive_axios.js"),
    }

    def run(language: str, phase: str) -> dict[str, Any]:
        words = (*programs[language], cluster.urls["r1"], phase)
        said = tools.run(*words, cwd=clients[language].folder, QUORATE_TOKEN=TOKEN)
        answers: dict[str, Any] = json.loads(said.output)
        return answers

    return run


def test_python_generator_leaves_nothing_out(clients: Clients) -> None:
    told = [line for line in clients["python"].complaints.splitlines() if re.match(r"[A-Z]", line)]
    assert [line for line in told if "WARNING" in line or "Un" in line] == []


def test_python_driver_and_what_it_uses_are_typed(clients: Clients) -> None:
    tools.check_python(clients["python"].folder)


def test_the_page_names_the_generator_whose_client_is_driven() -> None:
    [block] = blocks_run_by("tests/generated_clients/test_generated_clients.py")
    assert f"openapi-generator-cli generate {' '.join(tools.AXIOS)} -i " in block.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_generated_client_does_all_that_an_application_wants(drive: Drive, language: str) -> None:
    assert drive(language, "all") == EXPECTED


def test_generated_clients_learn_whether_a_failed_operation_may_have_had_an_effect(
    drive: Drive, cluster: LocalCluster
) -> None:
    """One replica of three is left: a write reaches it and may yet take effect; a dequeue cannot even begin."""
    for victim in ("r2", "r3"):
        cluster.kill(victim)
    try:
        alone = {language: drive(language, "alone") for language in LANGUAGES}
    finally:
        for victim in ("r2", "r3"):
            cluster.restart(victim)
    for answers in alone.values():
        assert answers["write"] == problem("outcome-unknown", 504, definite=False)
        assert answers["take"] == problem("unavailable", 503)
    for language in LANGUAGES:
        assert drive(language, "again") == {"write": {"status": 204}, "take": {"items": []}}


def test_vendored_api_pages_are_those_of_the_pinned_package() -> None:
    for path in (tools.ROOT / "replica" / "openapi" / "swagger_ui").iterdir():
        assert path.read_bytes() == (tools.NODE_MODULES / "swagger-ui-dist" / path.name).read_bytes()
