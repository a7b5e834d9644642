"""The cluster file on disk and over the wire: a document in TOML, a new one with its comments, and reading one from where it is.

Owns the text of documents and where they are looked for. What a document means, `api_specs.cluster` decides.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from msgspec import UNSET
from msgspec.structs import asdict

from ...adts.types.catalogue import SPECIFICATIONS
from ...api_specs.cluster import ChoiceRule as Rule
from ...api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo, parse
from ...api_specs.limits import DEFAULTS
from ...api_specs.patterns import covers
from ...client_sdk.api.connect import is_url
from ..failure import Failure, Usage
from ..quorums.choice_rule import filled_in, quoted, rule_text

DEFAULT_NAME: Final = "cluster.toml"
_HOST_AND_PORT: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}/?")

_HEAD = """\
# A Quorate cluster. Every replica and every front end reads this document. Two that hold different
# versions of it refuse each other, for their quorums need not meet: change it everywhere, or nowhere.
# Once a replica has voted it refuses other replicas, votes and quorum choices here. These change while it runs:
# `quorate member`, `quorate change`.
"""

_CHOICES = """
# Quorum choices: for each event class [votes read before, votes that must store it after].
# The first rule whose `objects` matches an object's name applies; without one, the least that majorities allow. A rule to
# which an earlier one leaves no objects is refused.
# An event class is an operation and how it ended: Deq/Ok took an item, Deq/Empty found none.
# Whoever depends on an event must meet it: Deq reads Enq and Deq, so with {total} votes
#     Deq's first number + Enq's second number > {total},   Deq's first number + Deq's second number > {total}.
# Enq depends on nothing and reads nobody. A choice that breaks such a rule is refused by name.
#
# Another choice for a queue: "Enq/Ok" = [0, 1], "Deq/Ok" = [{total}, 1], "Deq/Empty" = [{total}, 0] adds items as long
# as a single replica lives, and takes them only while all of them do. Put such a rule above the general one,
# with a narrower name (objects = "queue/orders-*"). Peek and Size are filled in by themselves.
#
# Instead of numbers a rule may give quorum systems: reads and writes, or one for each operation and event class, as
#     initials = {{ Deq = "r1*r2 + r3" }}
#     finals = {{ Enq = "(r1 + r2)*r3", Deq = "(r1 + r2)*r3" }}
# `quorate quorums plan queue --mix Enq=50,Deq=50 --toml` prints such rules, to be pasted here.
"""

_COMMENTS: Final = {
    "store": " # the data folder formatted with this id; an empty one may not vote",
    "offset_max_s": " # a replica refuses timestamps further than this from its own clock",
}
_ONE_MACHINE: Final = {
    "[clock]": "# What the operator vouches for. All these replicas, and their callers, read one machine's clock: nothing to wait for.\n",
    "replica_error_s": " # how far a replica's clock may be from true time",
    "front_end_error_s": " # how far the clock of a caller by Python may be; without this line callers measure it against the replicas",
}
_MANY_MACHINES: Final = {
    "[clock]": "# What the operator vouches for: the order of enqueues by different callers rests on it, nothing else does.\n",
    "replica_error_s": " # how far a replica's clock may be from true time: what chrony or ntpd report, doubled",
}


def new_document(
    urls: Mapping[str, str],
    *,
    name: str = "local",
    rules: Sequence[Rule] = (),
    types: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The commented TOML text of a new cluster with one vote a replica and a new store id for each.

    `rules` are quorum choices to stand above the majorities, or in their place; `types` are data types of one's own.
    """
    votes = dict.fromkeys(urls, 1)
    general = [f"{adt}/*" for adt in SPECIFICATIONS]
    left = [
        Rule(each)
        for each in general
        if not any(covers(rule.objects, each, SPECIFICATIONS) for rule in rules)
    ]
    is_one_machine = all(map(is_loopback, urls.values()))
    document = ClusterDocument(
        name,
        tuple(ReplicaInfo(replica, url, store=secrets.token_hex(8)) for replica, url in urls.items()),
        tuple(filled_in(rule, votes) for rule in [*rules, *left]),
        ClockSettings(0.0, 0.0) if is_one_machine else ClockSettings(0.05),
        types=dict(types) or UNSET,
    )
    comments = _COMMENTS | {"[[choices]]": _CHOICES.format(total=len(urls))}
    text = _HEAD + document_text(document, comments | (_ONE_MACHINE if is_one_machine else _MANY_MACHINES))
    parse(text, "the new document")
    return text


def document_text(document: ClusterDocument, comments: Mapping[str, str] = MappingProxyType({})) -> str:
    """The document in TOML, without its place among configurations; of limits, those that are not the defaults.

    `comments` stand before the part that they are named after, as `[clock]`, or behind each line of the setting.
    """

    def line(name: str, value: object) -> str:
        return f"{name} = {quoted(value) if isinstance(value, str) else value}{comments.get(name, '')}\n"

    def part(title: str, settings: Mapping[str, object]) -> str:
        lines = "".join(line(name, value) for name, value in settings.items())
        return f"\n{comments.get(title, '')}{title}\n{lines}" if settings else ""

    replicas = [asdict(each) for each in document.replicas]
    clock, limits = asdict(document.clock), asdict(document.limits)
    return "".join(
        [
            line("name", document.name),
            *(
                part(
                    "[[replicas]]", {name: value for name, value in each.items() if value not in ("", UNSET)}
                )
                for each in replicas
            ),
            comments.get("[[choices]]", ""),
            *("\n" + rule_text(rule) for rule in document.choices),
            part("[clock]", {name: value for name, value in clock.items() if value is not None}),
            part(
                "[limits]",
                {name: value for name, value in limits.items() if value != getattr(DEFAULTS, name)},
            ),
            part("[types]", document.own_types),
        ]
    )


def is_loopback(url: str) -> bool:
    """Whether the URL leads to this machine alone."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def write_new(path: Path, text: str) -> None:
    """Write `text` to `path`, which must not exist yet; nothing is left there where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file, _removed_unless_whole(path):
            file.write(text)
            file.flush()
    except FileExistsError:
        found = f"{path} exists already" if path.parent.is_dir() else f"{path.parent} is no folder"
        raise Usage(f"{found}; nothing was changed. Name another file with --out.") from None
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}.") from None


@contextmanager
def _removed_unless_whole(path: Path) -> Iterator[None]:
    """Half a file would be in the way of the next try."""
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def url_of(cluster: str) -> str | None:
    """The URL of the replica that `cluster` names, also by HOST:PORT; None when it names a file."""
    if is_url(cluster):
        return cluster
    if _HOST_AND_PORT.fullmatch(cluster) and not Path(cluster).exists():
        return f"http://{cluster}"
    return None


def folder_of(cluster: str) -> Path:
    """Where code of one's own is looked for, besides where Python finds modules: the folder of the file that `cluster` names, or this one."""
    return Path.cwd() if url_of(cluster) else Path(cluster).resolve().parent


def read_document(path: Path) -> ClusterDocument:
    """The checked document in the file; a sentence that says what to do when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Usage(
            f"There is no cluster file {path}: name one with --cluster FILE or a replica's URL with --cluster URL "
            "(or in QUORATE_CLUSTER), make one with `quorate init`, or start replicas with `quorate up`."
        ) from None
    except IsADirectoryError:
        raise Usage(f"{path} is a folder: name the cluster file itself, as {path / DEFAULT_NAME}.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Usage(f"The cluster file {path} cannot be read: {reason}.") from None
    return parse(text, str(path))


def check_member(document: ClusterDocument, replica_id: str) -> None:
    """Usage unless the document has that replica."""
    if replica_id not in document.urls:
        raise Usage(
            f"The cluster file has no replica {replica_id!r}: use one of {', '.join(document.urls)}. Where members changed while the cluster ran, start those "
            "that have their disks, and write down what is in force, as `quorate configuration > new.toml`."
        )


def change_stores(path: Path, old: ClusterDocument, new: ClusterDocument) -> None:
    """Write the ids of new stores into the document's file; its comments stay, and no reader meets half a file. Raises Failure."""
    lines = "; ".join(f"store = {quoted(each.store)} for {each.id}" for each in new.replicas)
    by_hand = f"The stores are made, but {path} must be changed by hand, to {lines}"
    text = path.read_text(encoding="utf-8")
    for was, is_now in zip(old.replicas, new.replicas, strict=True):
        if was.store == is_now.store:
            continue
        if not was.store or text.count(was.store) != 1:
            raise Failure(f"{by_hand}.")
        text = text.replace(was.store, is_now.store)
    parse(text, str(path))
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise Failure(f"{by_hand}: it cannot be written ({error.strerror}).") from None
