"""The OpenAPI document of a cluster with types of its own."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, TypedDict

import httpx
import jsonschema_rs
import pytest
import schemathesis

from quorate.replica.access.authorization import DOCUMENT_PATH
from tests.support.in_process import in_process


class Info(TypedDict):
    text: str
    of: "Info | None"


class Notes:
    examples = {"info": ({"text": "yes", "of": None},)}  # noqa: RUF012 - as users write it

    def __init__(self) -> None:
        self.last: Info | None = None

    def write(self, info: Info) -> None:
        """Write it down."""
        self.last = info


class Body(TypedDict):
    size: int


class Sizes:
    examples = {"body": ({"size": 1},)}  # noqa: RUF012 - as users write it

    def __init__(self) -> None:
        self.last: Body | None = None

    def note(self, body: Body) -> None:
        """Note it."""
        self.last = body


TYPES = {
    "orders": "tests.support.own_types:Orders",
    "cluster": f"{__name__}:Notes",
    "enqueue": f"{__name__}:Sizes",
}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with in_process(tmp_path_factory.mktemp("typed"), types=TYPES) as cluster:
        yield httpx.get(f"{cluster.document.urls['r1']}{DOCUMENT_PATH}", timeout=60).json()


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(deepcopy(document)).validate()
    for name in document["components"]["schemas"]:
        # Every reference leads somewhere, and each schema is one.
        jsonschema_rs.validator_for(
            {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        )


def test_a_type_of_ones_own_takes_no_name_of_ours(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["ClusterInfo"]["properties"].keys() >= {"hash"}
    other = {"$ref": "#/components/schemas/ClusterInfoValue"}
    assert schemas["ClusterWriteArguments"]["properties"]["info"]["$ref"] == other["$ref"]
    assert schemas["ClusterInfoValue"]["properties"]["of"]["anyOf"] == [other, {"type": "null"}]


def test_nor_that_of_a_body(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert "oneOf" in schemas["EnqueueBody"]
    assert schemas["EnqueueBodyValue"]["properties"].keys() == {"size"}
    told = schemas["EnqueueNoteArguments"]["properties"]["body"]
    assert told["$ref"] == "#/components/schemas/EnqueueBodyValue"
