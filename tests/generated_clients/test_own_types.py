"""A Python and a TypeScript client, generated from the document of a cluster with a type of its own: TypedDicts are types there, too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest

from quorate.replica.access.authorization import DOCUMENT_PATH
from tests.generated_clients import tools
from tests.support.in_process import in_process
from tests.support.own_types import TYPES

pytestmark = pytest.mark.slow

DRIVERS: Final = tools.HERE / "own_types"
EXPECTED: Final[dict[str, Any]] = {
    "before": None,
    "added": ["Ok", "NotThere"],
    "replaced": [["book", 2], ["pen", 1]],
    "state": "paid",
    "note": "soon",
    "instead_of": [["book", 2]],
}


class Served(NamedTuple):
    """Where a replica answers, and a file with its document."""

    url: str
    document: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("typed")
    with in_process(root / "cluster", types={"orders": TYPES["orders"]}) as cluster:
        url = cluster.document.urls["r1"]
        (root / "openapi.json").write_bytes(httpx.get(f"{url}{DOCUMENT_PATH}", timeout=60).content)
        yield Served(url, root / "openapi.json")


def test_a_python_client_has_models_of_them(served: Served, tmp_path: Path) -> None:
    complaints = tools.generate_python(tmp_path, served.document, DRIVERS)
    assert "orders" not in complaints.lower()
    tools.check_python(tmp_path)
    assert json.loads(tools.run(tools.PYTHON, "drive.py", served.url, cwd=tmp_path).output) == EXPECTED


def test_a_typescript_client_has_types_of_them(served: Served, tmp_path: Path) -> None:
    tools.generate_typescript(tmp_path, served.document, DRIVERS)
    tools.check_typescript(tmp_path)
    assert json.loads(tools.run(tools.NODE, "built/drive.js", served.url, cwd=tmp_path).output) == EXPECTED
