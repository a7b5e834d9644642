"""The manifest of a store: read as it was written, refused where it is of another schema or none."""

import pytest
from msgspec.structs import replace

from quorate.spark_reports.model.aggregates import Rejected
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.store.manifest import (
    Facts,
    InputFile,
    KeptDay,
    Manifest,
    all_facts,
    decode,
    encode,
)

ASIDE = Rejected("probes.jsonl", "unknown replica", 2, "{}")
FILE = InputFile(10, 5, "ab", ("2026-11-01",), Facts(1, (), (ASIDE,)))
DAY = KeptDay("cd", "day=2026-11-01/edges-cd.parquet", ("probes.jsonl",), Facts(9, ("r1", "r2"), (ASIDE,)))
MANIFEST = Manifest("shop", 1_000_000, {"r1": 1}, {"probes.jsonl": FILE}, {"2026-11-01": DAY})


def test_what_was_written_is_read() -> None:
    assert decode(encode(MANIFEST), "here") == MANIFEST


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            b'{"schema_version": 3, "days": 7}',
            "here is of schema version 3, and this release knows 1: use the release",
        ),
        (b"{}", "here is no manifest of a store"),
        (b"torn", "here is no manifest of a store"),
        (encode(replace(MANIFEST, days={"monday": DAY})), "here is no manifest of a store"),
    ],
)
def test_another_text_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        decode(text, "here")


def test_the_digest_of_a_day_is_that_of_what_its_edges_depend_on() -> None:
    files = {"probes.jsonl": FILE, "more.jsonl": FILE}
    digest = MANIFEST.digest(files)
    assert digest == MANIFEST.digest(dict(reversed(files.items())))
    assert digest == MANIFEST.digest(files | {"more.jsonl": replace(FILE, modified_ns=6)})
    assert replace(MANIFEST, votes={"r1": 3}).digest(files) == digest, (
        "no sample is read otherwise for other votes"
    )
    others = [
        MANIFEST.digest(files | {"more.jsonl": replace(FILE, sha256="other")}),
        MANIFEST.digest({"probes.jsonl": FILE}),
        MANIFEST.digest({"probes.jsonl": FILE, "other.jsonl": FILE}),
        replace(MANIFEST, step_us=2).digest(files),
        replace(MANIFEST, votes={"r2": 1}).digest(files),
        replace(MANIFEST, schema_version=2).digest(files),
    ]
    assert len({digest, *others}) == len(others) + 1


def test_facts_of_parts_are_added_up() -> None:
    other = Facts(3, ("r3", "r1"), (ASIDE._replace(rows=5, example="a"), ASIDE._replace(reason="other")))
    assert all_facts([DAY.facts, other]) == Facts(
        12, ("r1", "r2", "r3"), (ASIDE._replace(reason="other"), ASIDE._replace(rows=7, example="a"))
    )
    assert all_facts([]) == Facts()
