"""`quorate doctor`: what this machine has and lacks, and the fix for each.

Owns the list of checks. A check that fails is *needed* or not; only the needed ones make the exit code 1.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer
from msgspec import to_builtins
from rich.markup import escape
from rich.table import Table

from ...adts.dependency import dependencies
from ...adts.specification import Specification, operation_of
from ...adts.types.catalogue import SPECIFICATIONS
from ...api_specs.cluster import BadCluster, ChoiceRule, ClockSettings, ClusterDocument
from ...client_sdk.errors import BadInput
from ...measurement.faults.held_ports import is_free
from ...spark_reports.model.errors import JavaMissing
from ...spark_reports.spark.session import java_home
from ..cluster.document import folder_of, is_loopback
from ..cluster.status import (
    Found,
    ask_all,
    behind,
    cluster_document,
    lacking,
    nearly_full,
    own_views,
    stalled,
    without_code,
)
from ..failure import EXIT_FAILED, Failure, Usage
from ..output import AsJson, answer, console, reported
from ..quorums.anomalies import anomalies, observing, wrongly_observing
from ..quorums.data_types import type_of_cluster
from .check import Check
from .folder import folder_checks
from .secrets import SENT, certificate_checks, secret_checks

PYTHON_MIN: Final = (3, 11)
SQLITE_MIN: Final = (3, 35)
PORTS: Final = (8001, 8002, 8003)
SKEW_MAX_S: Final = 0.5
STORED_AHEAD_MAX_S: Final = ClockSettings().offset_max_s
"""So far ahead clocks may store that do not agree; more shows that some were wrong."""
PACKAGES: Final = {
    "client": ("httpx", "msgspec"),
    "cli": ("rich", "typer"),
    "replica": ("fastapi", "uvicorn"),
    "reports": ("jinja2", "numpy", "pandas", "pyarrow", "pyspark"),
}


@reported
def doctor(
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            "-c",
            envvar="QUORATE_CLUSTER",
            metavar="FILE|URL",
            help="Look at its replicas too: whether they answer, hold this document, and agree on the time.",
        ),
    ] = "",
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The folder where a replica writes, or will.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Look for what is missing or wrong on this machine, and say how to mend it."""
    secrets = list(secret_checks())
    answers, asked = _asked(cluster, secrets) if cluster else ([], [])
    checks = [
        *machine_checks(),
        *([] if cluster else [ports()]),
        *folder_checks(data),
        *secrets,
        *clock_checks(answers),
        *stored_checks(answers),
        *port_checks(answers),
        *certificate_checks({found.id: found.url for found in answers}),
        *tombstone_checks(answers),
        *catch_up_checks(answers),
        *outbox_checks(answers),
        *capacity_checks(answers),
        *code_checks(answers),
        *asked,
    ]
    is_sound = all(check.ok or not check.needed for check in checks)
    if as_json:
        answer(True, {"ok": is_sound, "checks": [to_builtins(check) for check in checks]})
    else:
        _show(checks)
    if not is_sound:
        raise typer.Exit(EXIT_FAILED)


def _asked(cluster: str, secrets: Iterable[Check]) -> tuple[list[Found], list[Check]]:
    """What the replicas answer, and whether their quorums are up; or none of it, and the finding that says why."""
    if not all(check.ok for check in secrets if check.what in SENT):
        fix = "mend what stands above first: no question could be sent"
        return [], [Check("replicas", False, "not asked", fix)]
    try:
        document = cluster_document(cluster)
        answers = ask_all(document)
        return answers, [*quorum_checks(document, answers), *consistency_checks(document, folder_of(cluster))]
    except (Failure, BadCluster, BadInput) as error:
        fix = "mend it, or name another file or a replica's URL with --cluster; the replicas were not asked"
        return [], [Check("cluster file", False, str(error), fix)]


def machine_checks() -> Iterator[Check]:
    """What every command needs of this machine."""
    yield at_least("Python", sys.version_info[:3], PYTHON_MIN, "install Python 3.11 or later")
    yield at_least(
        "SQLite", sqlite3.sqlite_version_info, SQLITE_MIN, "use a Python that is built with a newer SQLite"
    )
    for part, names in PACKAGES.items():
        yield packages(part, names, needed=part != "reports")
    yield java()


def at_least(what: str, found: tuple[int, ...], least: tuple[int, ...], fix: str) -> Check:
    """Whether a version is high enough."""
    return Check(what, found >= least, ".".join(map(str, found)), fix)


def packages(part: str, names: tuple[str, ...], *, needed: bool) -> Check:
    """Whether the packages of one part of the install are there."""
    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    extra = "quorate" if part == "client" else f"quorate[{part}]"
    text = ", ".join(found + [f"no {name}" for name in missing])
    return Check(f"packages: {part}", not missing, text, f"pip install '{extra}'", needed)


def java() -> Check:
    """Whether Spark would find a Java runtime; only reports need it."""
    with tempfile.TemporaryDirectory(prefix="quorate-doctor-") as scratch:
        try:
            java_home(Path(scratch))
        except JavaMissing as error:
            return Check("Java for reports", False, "none of version 17 or later", str(error), needed=False)
    return Check("Java for reports", True, "17 or later")


def ports() -> Check:
    """Whether the ports that `quorate init` writes are free."""
    taken = [str(port) for port in PORTS if not is_free(port)]
    fix = (
        "a cluster may run already; else choose others with --ports (`quorate up` finds free ones by itself)"
    )
    return Check(
        "ports 8001 to 8003",
        not taken,
        f"taken: {', '.join(taken)}" if taken else "free",
        fix,
        needed=False,
    )


def port_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether something else listens where a replica of this machine should, which does not answer as one."""
    for found in answers:
        parts = urlsplit(found.url)
        if found.is_up or found.tls_failed or not is_loopback(found.url) or parts.port is None:
            continue
        is_taken = not is_free(parts.port)
        fix = f"stop what listens there (`ss -ltnp 'sport = :{parts.port}'` shows it), or give {found.id} another port in the document"
        told = f"{parts.port} is taken, and not by {found.id}" if is_taken else f"{parts.port} is free"
        yield Check(f"port of {found.id}", not is_taken, told, fix)


def clock_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether each replica answers, and the clocks of those that do agree with one another."""
    for found in answers:
        yield Check(f"replica {found.id}", not found.trouble, found.trouble or "answers", found.fix)
    offsets = [found.clock_offset_s for found in answers if found.clock_offset_s is not None]
    if len(offsets) > 1:
        skew_s = max(offsets) - min(offsets)
        fix = "synchronise the clocks of the replicas (chrony, ntpd): blind operations are ordered by them"
        yield Check("clock skew", skew_s <= SKEW_MAX_S, f"{skew_s * 1000:.0f} ms between replicas", fix)


def quorum_checks(document: ClusterDocument, answers: list[Found]) -> Iterator[Check]:
    """Whether every operation finds its quorums, among the replicas that answer here and in the eyes of each of them."""
    lines = lacking(document, answers)
    fix = "bring back replicas that do not answer, until every operation finds its quorums"
    yield Check("quorums", not lines, "; ".join(lines) or "every operation finds its own", fix)
    if not lines and (own := own_views(answers)):
        fix = "ask again in 15 s, for what it sees may be so old; then see that it reaches the others"
        yield Check("quorums, as replicas see them", False, "; ".join(own), fix, needed=False)


_OF_OUTBOXES: Final = (
    "an enqueue is done at one replica; until that has relayed it, a dequeue may find nothing though it waits"
)
_OF_EXACT_EMPTY: Final = "an enqueue is done at one replica; a dequeue is told that the queue is empty only while all replicas answer"


def consistency_checks(document: ClusterDocument, folder: Path) -> Iterator[Check]:
    """What may be missed on objects of eventual consistency, rule by rule. The cluster file stands in `folder`, and code of one's own may."""
    for rule in document.choices:
        if rule.has_outboxes:
            told = _OF_EXACT_EMPTY if rule.has_exact_empty else _OF_OUTBOXES
            yield Check(f"outboxes of {rule.objects}", True, told)
        for name in document.specifications:
            if not (rule.covers(name) and document.choice_by(rule, name).is_weak):
                continue
            what = f"eventual consistency of {rule.objects}, {name}"
            try:
                yield Check(
                    what, True, f"{_read_by_more(document, rule, name)}{_anomalies(document, name, folder)}"
                )
            except Usage as usage:
                fix = "mend the class, or run doctor where the code of the type is"
                yield Check(what, False, f"what it misses is not known here: {usage}", fix, needed=False)


def _anomalies(document: ClusterDocument, name: str, folder: Path) -> str:
    """What weak answers of a type may miss, each with its shortest history."""
    if name in SPECIFICATIONS:
        specification: Specification = SPECIFICATIONS[name]
        relation = dependencies(specification)
    else:
        specification = own = type_of_cluster(document.own_types, name, folder)
        relation = own.relation
        if problem := wrongly_observing(own):
            raise Usage(problem)
    if not observing(specification):
        return "nothing, for the class names no operation in `observing`"
    return "; ".join(
        f"{each.answer} may miss {each.missed}: {each.history}" for each in anomalies(specification, relation)
    )


def _read_by_more(document: ClusterDocument, rule: ChoiceRule, name: str) -> str:
    """Which weak operations ask more than one replica, because the rule says so."""
    if name not in SPECIFICATIONS:  # Of these the rule names no operation.
        return ""
    asked = ", ".join(
        f"{each} reads {size.initial}"
        for each, size in document.choice_by(rule, name).classes.items()
        if operation_of(each) in observing(SPECIFICATIONS[name]) and size.initial > 1
    )
    return f"{asked}: leave these classes out of the rule, and any one replica answers. " if asked else ""


def stored_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether timestamps are stored that are ahead of the clocks, as after clocks were set back."""
    ahead = {found.id: found.stored_ahead_s for found in answers if found.stored_ahead_s is not None}
    if not ahead:
        return
    far = [f"{id}: {ahead_s:.0f} s" for id, ahead_s in ahead.items() if ahead_s > STORED_AHEAD_MAX_S]
    fix = (
        "see that the clocks are right; if they were ahead before, nothing is to be done: the objects that were changed then keep "
        "their order by counting on, and writes to any object ask the replicas first until time has come there; keys of then that are "
        "deleted count for --objects-max until then"
    )
    found = f"ahead of the clocks at {', '.join(far)}" if far else "none ahead of the clocks"
    yield Check("stored timestamps", not far, found, fix, needed=False)


def tombstone_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether a replica keeps the others from forgetting deleted keys."""
    waiting = [(found.id, found.tombstones) for found in answers if found.tombstones is not None]
    if not waiting:
        return
    told = [f"{id}: {tombstones.told}" for id, tombstones in waiting if tombstones.waiting]
    held_up_by = sorted({id for _, tombstones in waiting for id in tombstones.held_up_by})
    names = ", ".join(held_up_by)
    found = "; ".join(told) or "none waits to be forgotten"
    yield Check(
        "deleted keys",
        not held_up_by,
        f"{found}; held up by {names}" if held_up_by else found,
        f"bring back {names}: a deleted key is forgotten once every replica has confirmed the deletion",
        needed=False,
    )


def catch_up_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether all replicas hold what the others hold."""
    if any(found.catch_up for found in answers):
        lines = behind(answers)
        fix = "wait: it gets what it missed in the background; the metric quorate_catch_up_lag says how far it is"
        if any(found.full for found in answers):
            fix = (
                "make room at the replicas that are full (see capacity): until then they install nothing new"
            )
        yield Check("catch-up", not lines, "; ".join(lines) or "all are level", fix, needed=False)


def outbox_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether items get from outboxes to their queues."""
    if any(found.outboxes for found in answers):
        lines = stalled(answers)
        fix = (
            "its log says what fails: bring back replicas where a quorum is lacking, purge the outbox's dead letters where it has no room; do not replace "
            "this one, which may have the only copy"
        )
        yield Check("relays", not lines, "; ".join(lines) or "none has waited for long", fix, needed=False)


def capacity_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether the replicas have room."""
    if any(found.capacity_used for found in answers):
        lines = nearly_full(answers)
        fix = "take items out, delete keys, make room on its disk, or start it with a higher bound; at 100% it refuses what is new"
        yield Check("capacity", not lines, "; ".join(lines) or "all have room", fix, needed=False)


def code_checks(answers: list[Found]) -> Iterator[Check]:
    """Whether the replicas have the code of the types that the cluster file names."""
    if lines := without_code(answers):
        fix = (
            "install the module there, or lay its file beside the cluster file, and restart the replica: it keeps the objects "
            "meanwhile, and callers who have the code may use them"
        )
        yield Check("code of types", False, "; ".join(lines), fix, needed=False)


def _show(checks: list[Check]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("", "check", "found"):
        table.add_column(title, overflow="fold")
    colours: dict[str, Any] = {"ok": "green", "broken": "red", "missing": "yellow"}
    for check in checks:
        found = escape(check.found) + ("" if check.ok else f"\n[bold]→ {escape(check.fix)}[/bold]")
        table.add_row(f"[{colours[check.mark]}]{check.mark}[/]", escape(check.what), found)
    console().print(table)
