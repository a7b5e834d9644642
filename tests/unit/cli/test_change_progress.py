"""What is said while the configuration changes: how far it has come, what it waits for, and whether it has begun."""

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from quorate.adts.log import Value
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.cli import change_progress, progress
from quorate.cli.change_progress import Progress, missing
from quorate.client_sdk.protocol.configurations import joint, settled, without
from quorate.client_sdk.protocol.core.values import LONG, Carry, CompareAndSet, Done, Failed, Outcome
from quorate.client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Holding,
    Look,
    Looked,
    Perform,
    Steps,
    Tell,
    Wait,
)

R4 = ReplicaInfo("r4", "http://127.0.0.1:4", store="s4")
THREE = ClusterDocument(
    "c", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}", store=f"s{n}") for n in (1, 2, 3))
)
FOUR = with_members(THREE, [*THREE.replicas, R4])
EAGER = replace(THREE, choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),))
EAGER_OF_TWO = (ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (2, 1)}),)
BOTH = joint(THREE, FOUR)
LATE = Failed("unknown", "no answer in time", definite=False)
REFUSED = Failed("refused", "the token lacks a scope", definite=True)
CARRIED = Done(0, "Carry/Ok", frozenset())


def holding(document: ClusterDocument = THREE, store: str = "", **options: object) -> Holding:
    found = Holding(document.number, (), 0, cluster=document.hash, store=store)
    return replace(found, **options)


HERE = {each.id: holding(store=each.store) for each in THREE.replicas}


def choosing(document: ClusterDocument) -> Perform:
    return Perform(CompareAndSet(CONFIGURATION, None, Value(msgspec.json.encode(document).decode())))


CHOOSING = choosing(BOTH)
DEAD = " (one that is off for good can be removed, or replaced, with --declare-dead ID)"


def swapped(*, is_done: bool) -> Done:
    return Done(is_done, "Cas", frozenset())


def looked(document: ClusterDocument) -> Looked:
    return Looked(Done(None, "Read/Ok", frozenset()), document)


def copies(told: Progress, *outcomes: Outcome) -> None:
    """So many objects were tried, with these outcomes."""
    names = tuple(Carry(f"queue/{number}") for number in range(len(outcomes)))
    told.hear(CarryAll(names), outcomes)


def found(told: Progress, objects: int) -> None:
    """Replicas hold so many."""
    names = tuple(f"queue/{number}" for number in range(objects))
    told.hear(Ask(BOTH), {"r1": Holding(1, names, 0), "r2": Holding(1, names[1:], 0)})


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too early to be said."""
    monkeypatch.setattr(change_progress, "TOLD_S", -1.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)


def test_how_far_a_change_has_come_is_told_in_words(capsys: pytest.CaptureFixture[str], hasty: None) -> None:
    with Progress(None, out=Console(stderr=True)) as told:
        found(told, 3)
        copies(told, CARRIED, LATE)
        assert told.waits == "queue/1 is not copied yet: no answer in time"
        copies(told, CARRIED, CARRIED)
        assert told.waits.startswith("3 of 3 objects are copied, and whoever repeats the command copies all")
        told.hear(Ask(BOTH, names=False), {"r1": Holding(1, (), 3), "r3": Holding(1, (), 2)})
    objects, first, last, keys = capsys.readouterr().err.splitlines()
    assert objects == "3 objects to copy."
    assert first.startswith("  objects copied: 1 of 3")
    assert last.startswith("  objects copied: 3 of 3")
    assert (
        keys
        == "Waiting until old idempotency keys expire (3 now): `retry_window_s` and `deadline_s_max`, about a minute by default."
    )
    assert told.waits == "3 old idempotency keys have not expired yet"


@pytest.mark.parametrize("names", [True, False])
def test_who_does_not_say_what_it_holds_is_named(capsys: pytest.CaptureFixture[str], names: bool) -> None:
    """Nothing is said of objects and keys before it is known of enough members."""
    told = Progress(None)
    told.hear(Ask(BOTH, names=names), {"r1": Holding(1, (), 0), "r2": Holding(0, (), 0)})
    assert told.waits == f"r2, r3 did not answer{DEAD}"
    assert capsys.readouterr().err == ""


def test_what_is_left_to_be_carried_alone_is_not_counted_yet() -> None:
    told = Progress(None)
    found(told, 2)
    copies(told, Done(0, LONG, frozenset()), CARRIED)
    assert told.waits.startswith("1 of 2 objects are copied")
    copies(told, CARRIED)
    assert told.waits.startswith("2 of 2 objects are copied")


def test_what_another_change_copies_is_counted_anew(capsys: pytest.CaptureFixture[str], hasty: None) -> None:
    with Progress(None, out=Console(stderr=True)) as told:
        found(told, 1)
        copies(told, CARRIED)
        found(told, 2)
        copies(told, CARRIED)
    _, first, _, second = capsys.readouterr().err.splitlines()
    assert first.startswith("  objects copied: 1 of 1")
    assert second.startswith("  objects copied: 1 of 2")


def test_on_a_terminal_one_line_is_written_anew(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(None, out=Console(stderr=True, force_terminal=True, width=100)) as told:
        found(told, 2)
        copies(told, CARRIED)
        copies(told, CARRIED)
    shown = capsys.readouterr().err
    assert "objects copied" in shown
    assert "2 of 2" in shown
    assert "\x1b[2K" in shown, "it is erased at the end"


def test_programs_are_not_told_how_many_are_copied(capsys: pytest.CaptureFixture[str], hasty: None) -> None:
    told = Progress(None)
    found(told, 1)
    copies(told, CARRIED)
    assert capsys.readouterr().err == "1 object to copy.\n"


@pytest.mark.parametrize(
    ("deadline_s", "more"),
    [
        (200.0, ""),
        (99.0, " That is longer than --deadline: whoever repeats the command copies all of them anew."),
    ],
)
def test_it_is_said_how_long_copies_take_at_their_rate(
    capsys: pytest.CaptureFixture[str], deadline_s: float, more: str
) -> None:
    found(Progress(None, rate=2, deadline_s=deadline_s), 200)
    assert capsys.readouterr().err == f"200 objects to copy. At 2 a second that takes 100 s.{more}\n"


def test_what_is_waited_for_is_said_once(capsys: pytest.CaptureFixture[str], hasty: None) -> None:
    told = Progress(lambda _: THREE)
    for held in ({}, {}, dict.fromkeys(("r1", "r2"), holding(EAGER))):
        told.hear(Ask(THREE), held)
        told.hear(Tell(EAGER, EAGER), dict.fromkeys(held, 0))
        told.hear(Wait(0.05), None)
    assert capsys.readouterr().err.splitlines() == [
        f"Waiting: r1, r2, r3 did not answer{DEAD}.",
        f"Waiting: r3 did not answer{DEAD}.",
    ]


@pytest.mark.parametrize(
    ("r4", "words"),
    [
        (None, "r4 did not answer"),
        (
            holding(store="s4", awaits=("r1", "r2")),
            "r4 has not been heard by r1, r2, so that it could not vote (its log says why; start those that are down, or replace them)",
        ),
        (
            replace(holding(store="s4", awaits=("r1",)), cluster="another"),
            "r4: other limits, clock settings or types, or of another cluster (give this one's file)",
        ),
        (
            holding(store="s4", has_voted=True),
            "r4 holds another store than before, or one that has voted: start a new one with another id",
        ),
        (
            holding(store="other"),
            "r4 holds another store than before, or one that has voted: start a new one with another id",
        ),
        (replace(holding(store="s4"), epoch=-1), "its members are not in one configuration yet"),
    ],
)
def test_it_is_named_what_a_new_member_lacks(r4: Holding | None, words: str) -> None:
    told = Progress(lambda _: FOUR)
    told.hear(Ask(FOUR), HERE if r4 is None else HERE | {"r4": r4})
    told.hear(Tell(THREE, THREE), dict.fromkeys(THREE.votes, 0))
    assert told.waits == words


def test_those_are_named_without_whom_nothing_begins() -> None:
    """One of three may be down; none of those may of whom each may hold something alone; and a new one must be there."""
    assert missing(BOTH, {"r1", "r2", "r4"}) == []
    assert missing(BOTH, {"r1", "r2", "r3"}) == ["r4"]
    assert missing(joint(EAGER, THREE), {"r1", "r2"}) == ["r3"]
    assert missing(joint(EAGER, THREE), {"r1", "r2", "r3"}) == []
    smaller = with_members(THREE, THREE.replicas[:2])
    assert missing(joint(THREE, smaller), {"r1", "r3"}) == ["r2"]
    assert missing(joint(THREE, smaller), {"r1", "r2"}) == []
    eager = replace(smaller, choices=EAGER_OF_TWO)
    assert missing(joint(EAGER, eager), {"r1", "r2"}) == ["r3"]
    assert missing(joint(EAGER, eager, ["r3"]), {"r1", "r2"}) == []
    assert missing(joint(EAGER, eager, ["r3"]), {"r1"}) == ["r2"]


def test_what_was_certainly_not_chosen_has_not_begun() -> None:
    """As where the token may not change the cluster's register."""
    told = Progress(None)

    def steps() -> Steps:
        yield CHOOSING
        yield CHOOSING
        yield Look()
        return THREE

    going = told.follow(steps())
    next(going)
    assert told.is_choosing, "it may be chosen before an answer comes"
    going.send(REFUSED)
    told.hear(CHOOSING, REFUSED)
    assert (told.is_choosing, told.is_joint) == (False, False)
    told.hear(CHOOSING, LATE)
    assert (told.is_choosing, told.is_joint) == (True, False)
    assert told.waits == "the cluster does not note its next configuration: no answer in time"
    told.hear(Look(), Looked(LATE, THREE))
    assert told.is_choosing
    assert told.waits == "the cluster does not tell its configuration: no answer in time"
    told.hear(Look(), looked(THREE))
    assert (told.is_choosing, told.is_joint) == (False, False)


def test_both_are_in_force_between_the_first_choice_and_the_second() -> None:
    """Also another operator's, before one's own begins."""
    told = Progress(lambda _: FOUR)
    told.hear(CHOOSING, swapped(is_done=False))
    assert not told.is_joint
    told.hear(CHOOSING, LATE)
    assert told.is_choosing
    told.hear(CHOOSING, swapped(is_done=True))
    assert (told.is_choosing, told.is_joint) == (False, True)
    without_r3 = joint(THREE, with_members(THREE, THREE.replicas[:2]))
    told.hear(choosing(without(without_r3, ["r3"])), swapped(is_done=True))
    assert told.is_joint, "the same change, without one that is dead"
    told.hear(choosing(settled(BOTH)), swapped(is_done=True))
    assert not told.is_joint
    told.hear(Tell(BOTH), dict.fromkeys(BOTH.votes, 1))
    assert told.is_joint
    told.hear(Tell(settled(BOTH)), dict.fromkeys(BOTH.votes, 2))
    assert not told.is_joint


def test_who_has_gone_on_is_not_waited_for() -> None:
    told = Progress(lambda _: FOUR)
    told.hear(Tell(BOTH), {"r1": 1, "r2": 1, "r3": 0})
    assert told.waits == f"r3, r4 did not go on to configuration 1{DEAD}"
    assert told.behind == ["r3", "r4"]
    told.hear(Look(), Looked(LATE, THREE))
    told.hear(Tell(BOTH), dict.fromkeys(BOTH.votes, 1))
    assert told.waits == "the cluster does not tell its configuration: no answer in time"
