"""Shows that all that a replica's process says is one record on one line, in the form that was asked for, from start to stop;
that acts of administrators are among it, and neither tokens nor values.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.system.guarded import GuardedCluster, new_token

JSON: Final = {"Content-Type": "application/json"}
SECRET: Final = "a-secret-value"
KEY: Final = "a-secret-idempotency-key"
TEXT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ replica=r1 [\w.]+: .*")


@pytest.fixture(params=["json", "text"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What a replica logs between start and stop, while it is used, misused and administered."""
    cluster = GuardedCluster(tmp_path)
    cluster.serve_options.extend(["--log-format", request.param])
    writer, admin = (new_token(cluster.tokens, scope, name=scope) for scope in ("write", "admin"))
    with cluster:
        exercise(cluster, writer, admin)
        spoil(cluster)
    log = cluster.log()
    for secret in (writer, admin, cluster.replica_token):
        assert secret[-43:] not in log
    return log


def exercise(cluster: GuardedCluster, writer: str, admin: str) -> None:
    """Operations, slips and intrusions, each with something that must not be told; and an act."""
    with cluster.client(writer) as client:
        item = {"item": SECRET}
        assert (
            client.post("/v1/queues/q/items", json=item, headers={"Idempotency-Key": KEY}).status_code == 200
        )
        assert client.post("/v1/queues/q/dequeue", json={}).json() == {"items": [SECRET]}
        assert client.put("/v1/registers/r", json={"value": SECRET, "more": SECRET}).status_code < 500
        cut_off = client.post("/v1/queues/q/items", content=f'{{"item": "{SECRET}', headers=JSON)
        assert cut_off.status_code == 400
        assert client.post("/replica/v1/batch", json={"cluster": SECRET, "requests": []}).status_code == 409
        assert client.get("/v1/status", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 401
    with cluster.client(admin) as client:
        assert client.post("/v1/admin/tokens/read").status_code == 200


def spoil(cluster: GuardedCluster) -> None:
    """Spoil the list of tokens: the replica complains, and goes on."""
    with cluster.tokens.open("a") as listed:
        listed.write("no line of a list\n")
    cluster.wait_for(lambda: "valid before stay valid" in cluster.log())


def in_json(log: str) -> list[dict[str, Any]]:
    """The records, each by its members; AssertionError where a line is none."""
    records = [json.loads(line) for line in log.splitlines()]
    for record in records:
        assert record.keys() - {"fields", "exception"} == {"time", "level", "logger", "replica", "message"}
        assert record["replica"] == "r1"
    return records


@pytest.mark.slow
@pytest.mark.parametrize("log", ["json"], indirect=True)
def test_each_line_is_an_object(log: str) -> None:
    records = in_json(log)
    acts = [
        (record["message"], record["fields"]) for record in records if record["logger"] == "quorate.audit"
    ]
    assert [act for act, _ in acts] == ["start", "tokens-asked", "tokens-read", "stop"]
    assert [record["level"] for record in records if "valid before" in record["message"]] == ["ERROR"]
    assert SECRET not in log
    assert KEY not in log


@pytest.mark.slow
@pytest.mark.parametrize("log", ["text"], indirect=True)
def test_each_line_is_a_record_in_text(log: str) -> None:
    lines = log.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if not TEXT.fullmatch(line)] == []
    assert '{"act":"start"' in log
    assert SECRET not in log
    assert KEY not in log
