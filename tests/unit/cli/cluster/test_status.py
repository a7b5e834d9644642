"""What `quorate status` shows below its table: who is behind, nearly full, or lacks the code of a type."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, ReplicaInfo
from quorate.api_specs.messages import Protocols
from quorate.cli.cluster import status
from quorate.cli.cluster.document import document_text
from quorate.cli.cluster.probe import NoAnswer
from quorate.cli.cluster.status import (
    BEHIND_S,
    CatchUp,
    Found,
    Tombstones,
    _show,
    cluster_document,
    fallbacks,
    told_document,
    understood,
)
from quorate.cli.failure import Failure
from quorate.client_sdk.protocol.configurations import joint


def shown(capsys: pytest.CaptureFixture[str], *found: Found) -> str:
    """All that is shown, without breaks."""
    _show(list(found))
    return " ".join(capsys.readouterr().out.split())


def ready(id: str, **more: object) -> Found:
    return Found(id, f"http://{id}:1", is_up=True, is_ready=True, **more)  # type: ignore[arg-type]


def test_who_is_behind_is_told_with_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(
        capsys,
        ready("r1", catch_up={"r2": CatchUp(7, BEHIND_S + 1), "r3": CatchUp(0, 0.5)}),
        ready("r2", catch_up={"r1": CatchUp(9, BEHIND_S + 1)}, capacity_used={"objects-max": 1.0}),
    )
    assert "r1 catches up with r2: 7 changes to look at." in told
    assert "r2 is behind r1: 9 changes that it cannot install, for it has used all of --objects-max." in told
    assert "r2 has used 100% of --objects-max." in told
    assert "with r3" not in told


def test_items_that_wait_in_an_outbox_for_long_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(
        capsys, ready("r1", outboxes={"queue/mail": BEHIND_S + 1}), ready("r2", outboxes={"queue/a": 1.0})
    )
    assert "r1 has items of queue/mail in its outboxes that it could not relay for 11 s." in told
    assert "queue/a" not in told


def test_missing_code_and_deleted_keys_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(
        capsys,
        ready("r1", without_code={"cart": "shop:Cart cannot be imported"}),
        ready("r2", without_code={"cart": "shop:Cart cannot be imported"}),
        ready("r3", tombstones=Tombstones(2, 5.0, ("r1",))),
    )
    assert "no call of cart can be run at r1, r2: shop:Cart cannot be imported." in told
    assert "r3 waits to forget 2 deleted keys, the oldest for 5 s; held up by r1." in told


def test_deleted_keys_of_a_time_when_clocks_were_ahead_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, ready("r1", tombstones=Tombstones(2, 0.0, (), 1757.4)))
    assert "r1 waits to forget 2 deleted keys, some for 1757 s yet, for clocks were ahead of time." in told


def test_replicas_of_different_releases_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = Protocols(1, 1), Protocols(1, 2)
    told = shown(
        capsys,
        ready("r1", release="0.2.0", protocol=new),
        ready("r2", protocol=old),
        ready("r3", release="0.2.0", protocol=new),
        Found("r4", "http://r4:1", trouble="connection refused"),
    )
    assert "r1, r3: release 0.2.0, which speaks versions 1-2 of the replica protocol." in told
    assert "r2: release of before, which speaks version 1 of the replica protocol." in told
    assert "r4: release" not in told
    told = shown(
        capsys, ready("r1", release="0.2.0", protocol=new), ready("r3", release="0.2.0", protocol=new)
    )
    assert "release" not in told


def test_fallbacks_in_force_and_why_none_is_switched_are_told() -> None:
    members = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in (1, 2, 3))
    rule = ChoiceRule("queue/jobs", fallback=Fallback(down=("r3",), reads="r1"))
    first, second = (ClusterDocument("c", members, (rule.in_state(each),)) for each in (False, True))
    assert fallbacks(first, [ready("r1"), ready("r2")]) == []
    assert fallbacks(
        second, [ready("r1", switch_waits="no right"), ready("r2", switch_waits="no right")]
    ) == [
        "queue/jobs: its fallback is in force while r3 is down",
        "r1, r2: no right",
    ]
    falls, goes = joint(first, second), joint(second, first)
    assert fallbacks(falls, []) == [
        "queue/jobs: its fallback is being put in force; it holds while r3 is down"
    ]
    assert fallbacks(goes, []) == [
        "queue/jobs: its fallback is being put out of force; it holds while r3 is down"
    ]


def test_where_all_is_well_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _show([ready("r1", catch_up={"r2": CatchUp(3, BEHIND_S - 1)})])
    out = capsys.readouterr().out
    assert "ready" in out
    assert "catches up" not in out
    assert out.rstrip().splitlines()[-1].split()[:2] == ["r1", "ready"]


def test_a_replica_of_before_that_tells_of_no_outboxes_is_understood() -> None:
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),))
    told = {"hash": document.hash, "reasons": [], "replica": "r1", "incarnation": "i", "objects": 0}
    told |= {"file_bytes": None, "now_us": 0, "clock": None, "tombstones": None}
    assert understood(document, "r1", told, 0).outboxes == {}
    assert understood(document, "r1", told | {"outboxes": {"queue/a": 2.5}}, 0).outboxes == {"queue/a": 2.5}


def test_a_replica_that_is_behind_the_configuration_is_told_apart_from_one_with_another_file() -> None:
    document = ClusterDocument("c", (ReplicaInfo("r1", "http://r1:1"),), epoch=2)
    told = {"hash": "of another", "reasons": [], "replica": "r1", "incarnation": "i", "objects": 0}
    told |= {"file_bytes": None, "now_us": 0, "clock": None, "tombstones": None}
    behind = understood(document, "r1", told | {"epoch": 1}, 0)
    assert behind.trouble == "it is in configuration 1, and the cluster in 2"
    assert behind.fix == "update its release: it knows of no changes while the cluster runs"
    newer = understood(document, "r1", told | {"epoch": 1, "protocol": {"oldest": 2, "newest": 2}}, 0)
    assert newer.fix == "it goes on by itself, as soon as it reaches one of the others"
    assert not behind.is_ready
    assert understood(document, "r1", told | {"epoch": 2}, 0).trouble == "it holds another cluster file"


def at(*places: str, epoch: int = 4) -> ClusterDocument:
    """What replicas tell that go by a file with these URLs."""
    members = tuple(ReplicaInfo(f"r{n}", url) for n, url in enumerate(places, 1))
    return ClusterDocument("c", members, epoch=epoch)


def test_what_is_in_force_is_as_most_replicas_tell_it_and_not_as_the_file_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file says already where r3 is to be, as that of r3 does, which was started there."""
    before, after = at("http://a:1", "http://a:2", "http://a:3"), at("http://a:1", "http://a:2", "http://b:3")
    file = tmp_path / "cluster.toml"
    file.write_text(document_text(after))
    telling = {"http://b:3": after, "http://a:1": before, "http://a:2": before}

    def get(url: str, *_: Any) -> Any:
        if (document := telling.get(url)) is None:
            raise NoAnswer("connection refused")
        return {"document": msgspec.to_builtins(document)}

    monkeypatch.setattr(status, "get", get)
    assert told_document(str(file)) == before
    assert cluster_document(str(file)) == after, "who looks at replicas with this file sees what differs"
    telling["http://a:2"] = later = replace(before, epoch=6)
    assert told_document(str(file)) == later
    del telling["http://b:3"]
    assert told_document(str(file)) == later
    assert "r3 did not answer, and may know of a later configuration" in capsys.readouterr().err


def test_who_waits_for_replicas_goes_by_what_they_tell_once_they_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file has no number of a configuration: it waited in vain for replicas that had changed while they ran."""
    document = at("http://a:1")
    file = tmp_path / "cluster.toml"
    file.write_text(document_text(document))
    asked: list[str] = []

    def get(url: str, path: str, *_: Any) -> Any:
        asked.append(path)
        if len(asked) <= 2:
            raise NoAnswer("connection refused")
        if path == "/v1/cluster":
            return {"document": msgspec.to_builtins(document)}
        told = {"hash": document.hash, "reasons": [], "replica": "r1", "incarnation": "i", "objects": 0}
        return told | {"file_bytes": None, "now_us": 0, "clock": None, "tombstones": None, "epoch": 4}

    monkeypatch.setattr(status, "get", get)
    monkeypatch.setattr(status, "_POLL_S", 0)
    status.status(str(file), wait_s=10)
    assert asked[:2] == ["/v1/cluster", "/v1/status"]


def test_nobody_is_led_from_https_to_http_by_what_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(document_text(at("https://a:1")))
    plain = {"document": msgspec.to_builtins(at("http://a:1"))}
    monkeypatch.setattr(status, "get", lambda *_: plain)
    with pytest.raises(Failure, match="sent in the clear"):
        told_document(str(file))
