"""What the replicas of a running cluster saw of each other, as input of a report: their probe logs, asked for page by page, and merged.

Owns the asking, and what is told of replicas that gave nothing. Which observer counts when, `quorate.spark_reports.merging` knows.
"""

import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from rich.console import Console

from ...adts.types.catalogue import CONFIGURATION, known_types
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import PROBE_LOG_PATH, ConfigurationNote, ProbeRow
from ..cluster.document import DEFAULT_NAME, url_of
from ..cluster.probe import NoAnswer, get
from ..cluster.status import cluster_document
from ..credentials import read_token
from ..failure import Failure, Usage
from ..progress import busy
from .regimes import Told, told

if TYPE_CHECKING:
    from ...spark_reports.model.places import Where

PAGE_S: Final = 30.0
"""What one page may take: a replica that is busy, or far away, is waited for."""
LOG_S: Final = 600.0
"""And all pages of one replica."""
_NAME: Final = "probes-{}-19700101T000000Z.jsonl"
"""A file that names the observer; its rows say their times themselves."""


class Prepared(NamedTuple):
    """What a report is to be made of, its options, by name, and what is told of it."""

    place: "Where | None"
    wanted: dict[str, Any]
    notes: Sequence[str] = ()


def prepare(story: Console, inputs: Sequence["Where"], out: "Where", wanted: dict[str, Any]) -> Prepared:
    """Have what a report reads in one place: as it was given, or, of several observers, merged in `out`; of a running cluster what its replicas
    saw. Raises Failure, Usage and ReportError."""
    from ...spark_reports.merging import observers_in  # noqa: PLC0415 - an extra
    from ...spark_reports.model.places import is_uri  # noqa: PLC0415 - as above

    name, store = wanted["cluster"], wanted["store"]
    if inputs:
        if len(inputs) == 1 and (is_uri(inputs[0]) or len(observers_in(Path(inputs[0]))) < 2):
            return Prepared(inputs[0], wanted)
        return _merged([_local("--input", each) for each in inputs], _local("--out", out), wanted)
    if name is None and store is None:
        raise Usage("there is nothing to report on: give --input, --cluster, or --store and --cluster")
    cluster = None if name is None else cluster_at(name)
    if cluster is not None:
        with busy(story, "Asking the replicas what they saw"):
            return _of_cluster(cluster, _local("--out", out), wanted)
    if store is None:
        raise Usage(
            f"--cluster {name}: there is no such cluster file, folder of `quorate up`, or URL; the name of a cluster in a store needs --store"
        )
    return Prepared(None, wanted)


def _local(option: str, where: "Where") -> Path:
    """Raises Usage for a URI."""
    from ...spark_reports.model.places import is_uri  # noqa: PLC0415 - an extra

    if is_uri(where):
        raise Usage(
            f"{option} {where}: what several observers saw is merged in local folders; give one, and copy the report from there"
        )
    return Path(where)


def cluster_at(words: str) -> str | None:
    """What `--cluster` names, as other commands take it: a cluster file, the folder of `quorate up`, or a replica's URL; None where it is the
    name under which a store keeps days."""
    place = Path(words)
    if (place / DEFAULT_NAME).is_file():
        return str(place / DEFAULT_NAME)
    return words if place.is_file() or url_of(words) is not None else None


def time_asked(asked: Any, *, of_days: bool) -> tuple[Any, float, float]:
    """The time to report on, and from when to when replicas are asked: `--last` is before now, since they are asked now. With `of_days` a
    store says what the last days are; the replicas are asked for whole days, and one more."""
    from ...spark_reports.model.days import DAY_US  # noqa: PLC0415 - an extra
    from ...spark_reports.model.period import END_US, Asked  # noqa: PLC0415

    to_us = END_US if asked.to_us is None else asked.to_us
    from_us = asked.from_us or 0
    if asked.last_us is not None:
        from_us = max(0, min(to_us, time.time_ns() // 1000) - asked.last_us)
    if of_days:
        return asked, max(0, from_us // DAY_US - 1) * DAY_US / 1e6, END_US / 1e6
    shown = asked if asked.last_us is None else Asked(from_us, asked.to_us)
    return shown, from_us / 1e6, to_us / 1e6


class _Seen(NamedTuple):
    """What came of one replica's log: how far apart its looks are, why some or all rows are missing, empty where none is, the first moment
    of which it has any, and the configurations that it was in."""

    every_s: float = 0.0
    missing: str = ""
    first_s: float = math.inf
    configurations: tuple[ConfigurationNote, ...] = ()


def _of_cluster(cluster: str, out: Path, wanted: dict[str, Any]) -> Prepared:
    """What the replicas of a running cluster saw, with what the cluster says itself: the step, the type of its objects, votes, and its name in a
    store, which has a step and votes of its own once it has a day."""
    from ...spark_reports.store.folder import MANIFEST, ClusterFolder  # noqa: PLC0415 - an extra

    document, store = cluster_document(cluster), wanted["store"] and _local("--store", wanted["store"])
    asked, from_s, to_s = time_asked(wanted["asked"], of_days=store is not None)
    known = {"asked": asked, "adt": wanted["adt"] or _type_kept(document)}
    known["name"] = document.name
    known["cluster"] = None if store is None else document.name
    is_kept = store is not None and (ClusterFolder(store, document.name).place / MANIFEST).is_file()
    with tempfile.TemporaryDirectory(prefix="quorate-probes-") as scratch:
        seen = _fetch_all(document, Path(scratch), from_s, to_s)
        if not is_kept:
            known["votes"] = wanted["votes"] or {id: votes for id, votes in document.votes.items() if votes}
            known["step_s"] = wanted["step_s"] or max(each.every_s for each in seen.values())
        # What a store keeps may begin long before what replicas have yet.
        begin_s = from_s if is_kept else max(from_s, min(each.first_s for each in seen.values()))
        in_force = _in_force(document, seen, wanted | {"adt": known["adt"]}, begin_s)
        known |= {"present": in_force.present, "changes": in_force.changes}
        found = _merged([Path(scratch)], out, wanted | known)
    silent = _listed(seen)
    missing = [f"Without all that some replicas saw: {silent}."] if silent else []
    return found._replace(notes=[*found.notes, *missing, *in_force.sentences])


def _in_force(
    document: ClusterDocument, seen: Mapping[str, "_Seen"], wanted: Mapping[str, Any], begin_s: float
) -> Told:
    """The choice in force and when it changed: as the command line has it, else as the replicas noted it."""
    if wanted["present"] or wanted["changes"]:
        return Told(wanted["present"], wanted["changes"])
    notes = [note for each in seen.values() for note in each.configurations]
    return told(document, notes, wanted["adt"], round(begin_s * 1e6), wanted["votes"])


def _fetch_all(document: ClusterDocument, folder: Path, from_s: float, to_s: float) -> dict[str, _Seen]:
    """Write what each replica saw to a file of its own. Raises Failure where none gave anything."""
    token = read_token()

    def fetched(id: str) -> _Seen:
        return _fetch(document.urls[id], token, from_s, to_s, folder / _NAME.format(id))

    with ThreadPoolExecutor(len(document.urls)) as pool:
        seen = dict(zip(document.urls, pool.map(fetched, document.urls), strict=True))
    if not any(each.stat().st_size for each in folder.iterdir()):
        raise Failure(
            f"No replica tells of that time what it saw ({_listed(seen) or 'their probe logs have nothing of it'}). "
            "Serve them with --probe-log."
        )
    return seen


def _listed(seen: Mapping[str, _Seen]) -> str:
    return "; ".join(f"{id}: {each.missing}" for id, each in seen.items() if each.missing)


def _merged(places: Sequence[Path], out: Path, wanted: dict[str, Any]) -> Prepared:
    from ...spark_reports.merging import merge  # noqa: PLC0415 - an extra

    found = merge(places, out / "probes")
    split = f"; of {found.split}, observers saw both" if found.split else ""
    told = f"Merged into {found.place}: {found.samples} samples, seen by {', '.join(found.observers)}{split}."
    return Prepared(found.place, wanted, [told])


def _type_kept(document: ClusterDocument) -> str | None:
    """The one type of which the cluster keeps objects; None where there are several, or none, or no replica tells."""
    for url in document.urls.values():
        try:
            return _type_kept_at(document, url)
        except NoAnswer:
            continue
    return None


def _type_kept_at(document: ClusterDocument, url: str) -> str | None:
    token = read_token()
    kept = [
        name
        for name in known_types().keys() & document.specifications.keys()
        for shown in [get(url, f"/v1/overview?{urlencode({'prefix': f'{name}/', 'limit': 2})}", token)]
        if any(each["object"] != CONFIGURATION for each in shown.get("objects", ()))
    ]
    return kept[0] if len(kept) == 1 else None


def _fetch(url: str, token: str | None, from_s: float, to_s: float, path: Path) -> _Seen:
    """Write the rows of one replica's log to a file."""
    seen = _Seen()
    with path.open("wb") as file:
        try:
            for page in _pages(url, token, from_s, to_s):
                file.writelines(msgspec.json.encode(row) + b"\n" for row in page.rows)
                first_s = min((row.time_s for row in page.rows), default=math.inf)
                noted = (*seen.configurations, *page.configurations)
                seen = _Seen(page.every_s, "", min(seen.first_s, first_s), noted)
        except NoAnswer as error:
            return seen._replace(missing=str(error))
    return seen


class _Page(Struct):
    """What a replica answers."""

    every_s: float
    rows: list[ProbeRow]
    next: str
    configurations: list[ConfigurationNote] = []
    """None of a replica of an earlier release."""


def _pages(url: str, token: str | None, from_s: float, to_s: float) -> Iterator[_Page]:
    late_s, after = time.monotonic() + LOG_S, ""
    while True:
        wanted = {"from_s": from_s, "to_s": to_s, "after": after}
        told = get(url, f"{PROBE_LOG_PATH}?{urlencode(wanted)}", token, PAGE_S)
        try:
            page = msgspec.convert(told, _Page)
        except msgspec.ValidationError:
            raise NoAnswer("it answers, but not as a replica does") from None
        yield page
        if not page.next:
            return
        if page.next == after or time.monotonic() > late_s:
            raise NoAnswer("its probe log does not come to an end")
        after = page.next
