"""What the live page is told, from what replicas answer: who lacks what, and that a blank is a blank."""

import pytest
from msgspec.structs import replace

from quorate.adts.log import Dead, Entry, LeaseCounts, Leased, Summary, Value
from quorate.api_specs.classes_held import classes_held
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, Fallback, ReplicaInfo, checked
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Collected, Row, Status
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.replica.live.cluster_scan import Seen, Told
from quorate.replica.live.models import CatchUpSeen, FallbackSeen
from quorate.replica.live.overview import EVENT_CHARS_MAX, choices_of, overview_of, trace_of
from quorate.replica.service.status import CatchUp
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, make

T = [ZERO, *(make(1_700_000_000_000_000 + number, 0, "s") for number in range(1, 10))]
REPLICAS = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
DOCUMENT = ClusterDocument("test", REPLICAS)
QUEUE, REGISTER = "queue/q", "register/r"
NOW_US = 1_700_000_000_500_000
DOWN = Seen("down", "connection refused")


def log(
    *numbers: int, horizon: int = 0, fence: int = 0, value: str = "x", events: tuple[int, ...] = ()
) -> Collected:
    rows = tuple(Row(Entry(f"e{number}", T[number], Value(f'"{value}"'))) for number in numbers)
    summary = Summary(horizon=T[horizon])
    told = tuple((T[number], 'Deq();Ok("x")') for number in events)
    return Collected(Status(fence=T[fence], horizon=T[horizon]), summary=summary, rows=rows, events=told)


def seen(*held: dict[str, Collected] | Seen, more: bool = False) -> dict[str, Seen]:
    return {
        f"r{number}": each
        if isinstance(each, Seen)
        else Seen("ready", objects=tuple(each.items()), more=more)
        for number, each in enumerate(held, 1)
    }


def test_a_replica_misses_what_others_hold_above_the_highest_horizon() -> None:
    answers = seen(
        {QUEUE: log(2, 3, 4, horizon=1, fence=2)}, {QUEUE: log(1, 2, fence=1)}, {QUEUE: log(3, 4, horizon=2)}
    )
    told = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent={})
    (found,) = told.objects
    assert (found.horizon, found.fence, found.entries, found.is_cut) == (T[2], T[2], 2, False)
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": 2, "r3": 0}
    assert {id: each.entries for id, each in found.replicas.items()} == {"r1": 2, "r2": 0, "r3": 2}
    assert [each.missing for each in told.replicas] == [0, 2, 0]


def test_of_a_register_only_the_newest_value_is_missed() -> None:
    """Those before it are history, which one replica has deleted and another has not."""
    answers = seen({REGISTER: log(3)}, {REGISTER: log(1, 2, 3)}, {REGISTER: log(1)})
    (found,) = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent={}).objects
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": 0, "r3": 1}


def test_catch_up_is_each_replicas_own_word() -> None:
    told_by = {"r1": Told({"r2": CatchUp(None, None, 0), "r3": CatchUp(7, 2.5, 250)}), "r2": None}
    told = overview_of(DOCUMENT, "r1", 5, seen({}, {}, {}), newest=100, told=told_by, absent={})
    assert [each.catch_up for each in told.replicas] == [
        {"r2": CatchUpSeen(lag=None, entries=0), "r3": CatchUpSeen(lag=7, entries=250)},
        None,
        None,
    ]


KEY = "dictionary/users/ann"


@pytest.mark.parametrize(
    ("held", "since", "expected"),
    [
        ({KEY: log(2)}, 2, True),
        ({KEY: log(2)}, None, False),
        ({KEY: log(2, 3)}, 2, False),  # Another replica has written it anew.
        ({KEY: log(horizon=4)}, 4, True),
        ({KEY: log(2, horizon=4)}, 2, False),  # Somebody decided on a value meanwhile.
        ({KEY: log()}, 0, True),
    ],
)
def test_a_key_is_absent_where_nobody_knows_of_anything_newer_than_its_deletion(
    held: dict[str, Collected], since: int | None, expected: bool
) -> None:
    absent = {} if since is None else {KEY: T[since]}
    answers = seen({KEY: log()}, held, DOWN)
    (found,) = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent=absent).objects
    assert found.is_absent is expected


def test_members_have_roles_and_tell_their_configuration() -> None:
    """While r1 leaves and r4, which has no vote, comes in its place."""
    learner = ReplicaInfo("r4", "http://127.0.0.1:7004", votes=0)
    after = ClusterDocument("test", (*REPLICAS[1:], learner))
    before = checked(ClusterDocument("test", REPLICAS))
    changing = joint(before, checked(after))
    answers = {id: Seen("ready") for id in changing.votes}
    told_by = {"r2": Told(epoch=1, release="0.1.0"), "r3": Told(switch_waits="r2 is down, too")}
    told = overview_of(changing, "r2", 5, answers, newest=100, told=told_by, absent={})
    roles = {each.id: each.role for each in told.replicas}
    assert roles == {"r1": "leaving", "r2": "voter", "r3": "voter", "r4": "joining"}
    assert {each.id: each.configuration for each in told.replicas} == {
        "r1": None,
        "r2": 1,
        "r3": 0,
        "r4": None,
    }
    assert [each.release for each in told.replicas if each.id == "r2"] == ["0.1.0"]
    assert [each.switch_waits for each in told.replicas if each.id in ("r1", "r3")] == ["", "r2 is down, too"]
    assert told.configuration.number == 1
    assert told.configuration.before == ["r1", "r2", "r3"]
    assert told.configuration.members == ["r2", "r3", "r4"]
    del answers["r1"]
    done = overview_of(settled(changing), "r2", 5, answers, newest=100, told={}, absent={})
    assert (done.configuration.before, done.configuration.removed) == ([], ["r1"])
    assert {each.id: each.role for each in done.replicas if each.id == "r4"} == {"r4": "learner"}


def test_fallbacks_of_standing_rules_are_told_with_their_conditions() -> None:
    rule = ChoiceRule(
        "queue/*",
        {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2), "Deq/Empty": (2, 0)},
        fallback=Fallback({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}, live_below=3),
    )
    document = ClusterDocument("test", REPLICAS, choices=(rule,))
    told = overview_of(document, "r1", 5, seen({}, {}, {}), newest=100, told={}, absent={})
    assert told.configuration.fallbacks == [
        FallbackSeen(objects="queue/*", condition="fewer than 3 members are live", is_in_force=False)
    ]


def test_nothing_counts_as_missing_below_where_a_log_was_cut_off() -> None:
    answers = seen({QUEUE: log(3, 4)}, {QUEUE: log(1, 2)}, {QUEUE: log(1, 4)})
    (found,) = overview_of(DOCUMENT, "r1", 5, answers, newest=2, told={}, absent={}).objects
    assert found.is_cut
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": 2, "r3": 1}


@pytest.mark.parametrize(("name", "missing"), [(QUEUE, 2), ("cart/ann", 2), (REGISTER, 0)])
def test_of_a_register_the_newest_entry_counts_and_of_others_each(name: str, missing: int) -> None:
    """A replica that lacked a thousand stored calls looked whole."""
    answers = seen({name: log(1, 2, 3)}, {name: log(3)})
    (found,) = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent={}).objects
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": missing}


def test_a_log_that_was_cut_where_too_much_was_read_is_no_shorter_one() -> None:
    """Of thirty items of 700 KB eleven are shown: healthy replicas were told to miss what another one had just missed itself."""
    answers = seen({QUEUE: replace(log(3, 4), more=True)}, {QUEUE: log(1, 2, 3)})
    (found,) = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent={}).objects
    assert found.is_cut
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": 1}


def test_a_replica_that_does_not_know_an_object_misses_all_of_it_and_one_that_is_down_is_not_counted() -> (
    None
):
    told = overview_of(DOCUMENT, "r1", 5, seen({QUEUE: log(1)}, {}, DOWN), newest=100, told={}, absent={})
    (found,) = told.objects
    assert {id: each.missing for id, each in found.replicas.items()} == {"r1": 0, "r2": 1}
    down = told.replicas[2]
    assert (down.state, down.trouble, down.missing, down.answered_ms) == (
        "down",
        "connection refused",
        None,
        None,
    )


def test_a_page_of_objects_ends_where_every_replica_has_told_all() -> None:
    """r1 was cut off behind queue/b: that r2 knows queue/c says nothing of r1."""
    answers = seen({"queue/a": log(1), "queue/b": log(1)}, {"queue/b": log(1), "queue/c": log(1)}, more=True)
    told = overview_of(DOCUMENT, "r1", 5, answers, newest=100, told={}, absent={})
    assert ([each.object for each in told.objects], told.next) == (["queue/a", "queue/b"], "queue/b")
    told = overview_of(
        DOCUMENT, "r1", 5, seen({"queue/a": log(1)}, {"queue/c": log(1)}), newest=100, told={}, absent={}
    )
    assert ([each.object for each in told.objects], told.next) == (["queue/a", "queue/c"], None)


def test_a_trace_has_a_row_for_each_timestamp_and_blanks() -> None:
    answers = seen({QUEUE: log(1, 3, horizon=1)}, {QUEUE: log(1, 2, events=(4,))}, DOWN)
    told = trace_of(DOCUMENT, QUEUE, answers, newest=50, now_us=NOW_US)
    enq = '[Enq("x"); Ok()]'
    assert [(row.t, row.events) for row in told.rows] == [
        (T[1], {"r1": enq, "r2": enq}),
        (T[2], {"r2": enq}),
        (T[3], {"r1": enq}),
        (T[4], {"r2": '[Deq(); Ok("x")]'}),
    ]
    assert told.rows[0].at == "2023-11-14 22:13:20.000001"
    assert [each.horizon for each in told.replicas.values()] == [T[1], ZERO, None]
    assert not told.is_cut


def test_no_row_of_a_trace_lies_where_a_log_was_cut_off() -> None:
    """r1 holds more than its newest two entries: what r2 holds below them may be held by r1 as well."""
    told = trace_of(DOCUMENT, QUEUE, seen({QUEUE: log(3, 4)}, {QUEUE: log(2)}, {}), newest=2, now_us=NOW_US)
    assert [row.t for row in told.rows] == [T[3], T[4]]
    assert told.is_cut
    told = trace_of(
        DOCUMENT, QUEUE, seen({QUEUE: log(1, events=(4, 5))}, {QUEUE: log(2)}, {}), newest=2, now_us=NOW_US
    )
    assert [row.t for row in told.rows] == [T[4], T[5]]


def test_a_log_may_be_cut_off_by_the_size_of_its_payloads() -> None:
    """The page has room for 100 bytes; 60 are there, and the next value may have had 50."""
    small = ClusterDocument("test", REPLICAS, limits=Limits(page_bytes_max=100, value_bytes_max=50))
    answers = seen({QUEUE: log(3, value="x" * 58)}, {QUEUE: log(1)}, {})
    assert [row.t for row in trace_of(small, QUEUE, answers, newest=50, now_us=NOW_US).rows] == [T[3]]
    answers = seen({QUEUE: log(3, value="x" * 48)}, {QUEUE: log(1)}, {})
    assert [row.t for row in trace_of(small, QUEUE, answers, newest=50, now_us=NOW_US).rows] == [T[1], T[3]]


def leased(*numbers: int, dead: tuple[int, ...] = (), rows: tuple[int, ...] = ()) -> Collected:
    """A replica whose summary keeps these: held for a minute from NOW_US, or dead; its log has these rows above."""
    answer = log(*rows, horizon=max((*numbers, *dead)))
    entries = {number: Entry(f"e{number}", T[number], Value('"x"')) for number in (*numbers, *dead)}
    summary = Summary(
        horizon=T[max(entries)],
        leases=tuple(Leased(entries[number], NOW_US + 60_000_000, 2, is_held=True) for number in numbers),
        dead=tuple(Dead(entries[number], "rejected", 1) for number in dead),
    )
    return replace(answer, summary=summary)


def test_leases_and_dead_letters_have_their_rows_though_they_left_the_log() -> None:
    """r2 has not heard of the decision: there, the entry stands in the log. r3 never had it."""
    answers = seen({QUEUE: leased(1, dead=(2,), rows=(4,))}, {QUEUE: log(1, 2)}, {QUEUE: log(4)})
    told = trace_of(DOCUMENT, QUEUE, answers, newest=50, now_us=NOW_US)
    enq = '[Enq("x"); Ok()]'
    assert [(row.t, row.events) for row in told.rows] == [
        (T[1], {"r1": enq, "r2": enq}),
        (T[2], {"r1": enq, "r2": enq}),
        (T[4], {"r1": enq, "r3": enq}),
    ]
    assert {id: (each.state, each.words) for id, each in told.rows[0].lease_statuses.items()} == {
        "r1": ("held", "held until 22:14:21 UTC, delivery 2")
    }
    assert told.rows[0].lease_statuses["r1"].until_us == NOW_US + 60_000_000
    assert told.rows[1].lease_statuses["r1"].words == "dead letter: rejected, delivered once"
    assert told.rows[2].lease_statuses == {}
    counts = {id: (each.held, each.waiting, each.dead) for id, each in told.replicas.items()}
    assert counts == {"r1": (1, 0, 1), "r2": (0, 0, 0), "r3": (0, 0, 0)}


def test_what_is_kept_is_shown_below_where_a_log_was_cut_off_and_who_may_hold_it_is_told() -> None:
    """Of r2's log the newest two entries are known: whether it holds the first one is not."""
    answers = seen({QUEUE: leased(1, rows=(5, 6))}, {QUEUE: log(5, 6)}, {QUEUE: log(6)})
    told = trace_of(DOCUMENT, QUEUE, answers, newest=2, now_us=NOW_US)
    assert [(row.t, sorted(row.events), row.unseen) for row in told.rows] == [
        (T[1], ["r1"], ["r2"]),
        (T[5], ["r1", "r2"], []),
        (T[6], ["r1", "r2", "r3"], []),
    ]
    assert told.is_cut


def test_only_the_newest_of_what_is_kept_has_rows() -> None:
    answers = seen({QUEUE: leased(1, 2, 3)}, {QUEUE: leased(1)}, {})
    told = trace_of(DOCUMENT, QUEUE, answers, newest=2, now_us=NOW_US)
    assert [row.t for row in told.rows] == [T[2], T[3]]
    assert told.is_cut
    assert told.replicas["r1"].held == 3


def test_the_overview_counts_leases_as_the_latest_decision_tells() -> None:
    newer = Status(horizon=T[2], accepted=make_ballot(T[5], 1))
    late = replace(log(horizon=2), summary=None, status=newer, leases=LeaseCounts(1, 2, 3))
    early = replace(log(horizon=1), summary=None, leases=LeaseCounts(7, 7, 7))
    told = overview_of(
        DOCUMENT, "r1", 5, seen({QUEUE: early}, {QUEUE: late}, {}), newest=100, told={}, absent={}
    )
    (found,) = told.objects
    assert (found.held, found.waiting, found.dead) == (1, 2, 3)


def test_long_values_are_cut_in_a_trace() -> None:
    told = trace_of(
        DOCUMENT, QUEUE, seen({QUEUE: log(1, value="y" * 1000)}, {}, {}), newest=50, now_us=NOW_US
    )
    event = told.rows[0].events["r1"]
    assert len(event) == EVENT_CHARS_MAX
    assert event.endswith("y…")


def test_choices_are_those_in_force_with_their_constraints() -> None:
    rules = (
        ChoiceRule("queue/a*", classes={"Enq/Ok": (0, 1)}),
        ChoiceRule("queue/*", collect=False),
    )
    document = checked(ClusterDocument("test", REPLICAS, choices=rules))
    told = choices_of(document, seen({}, {}, DOWN))
    assert [(each.type, each.objects) for each in told.choices] == [
        ("queue", "queue/a*"),
        ("queue", "queue/*"),
        ("register", "*"),
        ("dictionary", "*"),
    ]
    first = told.choices[0]
    meets = {(each.operation, each.event_class) for each in first.constraints}
    assert meets == {(op, name) for op in ("Deq", "Peek", "Size") for name in ("Enq/Ok", "Deq/Ok")}
    sizes = {each.name: (each.initial, each.final) for each in first.classes}
    assert (sizes["Enq/Ok"], sizes["Deq/Ok"]) == ((0, 1), (3, 2))
    available = {each.name: each.is_available for each in first.classes}
    assert (available["Enq/Ok"], available["Deq/Ok"]) == (True, False), "r3 is down: no three can be read"
    assert told.ready == ["r1", "r2"]


def test_choices_made_of_systems_are_told_as_systems() -> None:
    document = checked(
        ClusterDocument("test", REPLICAS, choices=(ChoiceRule("queue/*", reads="r1 + r2*r3"),))
    )
    told = choices_of(document, seen({}, DOWN, DOWN)).choices[0]
    deq = next(each for each in told.classes if each.name == "Deq/Ok")
    assert deq.initial_system == "(r1 + (r2*r3))"
    assert deq.final_system is not None
    assert not deq.is_available, "r1 alone may be read, but no change is stored without r2 or r3"


def test_while_the_cluster_changes_a_class_is_available_where_both_sides_have_their_quorums() -> None:
    eager = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
    before = checked(ClusterDocument("test", REPLICAS, choices=(eager,)))
    both = joint(before, checked(ClusterDocument("test", REPLICAS)))
    for document, expected in ((before, False), (both, False), (settled(both), True)):
        told = next(each for each in choices_of(document, seen({}, {}, DOWN)).choices if each.type == "queue")
        assert {each.name: each.is_available for each in told.classes}["Deq/Ok"] is expected
        held = {
            each.event_class: each.is_held
            for each in classes_held(document, {"r1", "r2"})
            if each.type == "queue"
        }
        assert (held["Enq/Ok"], held["Deq/Ok"]) == (True, expected)
