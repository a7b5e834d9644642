"""The table that lectures draw, from what replicas answer."""

from quorate.adts.log import Dead, Decision, Entry, Leased, Summary, Value
from quorate.adts.times import Times, entry_id
from quorate.api_specs.messages import Collected, Row, Status
from quorate.client_sdk.inspection.log_table import (
    Column,
    Trace,
    column_of,
    decided_text,
    event_text,
    traces_of,
)
from quorate.timestamps.ballot import NO_BALLOT
from quorate.timestamps.timestamp import ZERO, Timestamp, make

T = [ZERO, *(make(1_700_000_000_000_000 + number, 0, "s") for number in range(1, 8))]


def entry(number: int, value: str | None) -> Entry:
    return Entry(f"e{number}", T[number], None if value is None else Value(f'"{value}"'))


def log(
    *entries: Entry, events: dict[int, str] | None = None, horizon: int = 0, fence: int = 0, accepted: int = 0
) -> Collected:
    return Collected(
        Status(fence=T[fence], horizon=T[horizon]),
        summary=Summary(horizon=T[accepted or horizon]),
        rows=tuple(Row(each) for each in reversed(entries)),
        events=tuple((T[number], event) for number, event in (events or {}).items()),
    )


def drawn(trace: Trace) -> list[list[str]]:
    """Label and cells of each row."""
    labels = trace.labels
    return [[labels[t], *(column.events.get(t, "") for column in trace.columns.values())] for t in trace.rows]


def test_full_logs_look_like_the_lecture() -> None:
    """Enq(x) at R1,R2; Deq at R2,R3 gives x; Enq(y) at R1,R2; Enq(z) at R1,R3; Deq at R1,R3 gives y (DESIGN 9).

    No replica holds all entries that define the state, and the blanks show it.
    """
    x, y, z = entry(1, "x"), entry(3, "y"), entry(4, "z")
    replies = {
        "r1": {"queue/q": log(x, y, z, events={5: 'Deq();Ok("y")'}, fence=3, horizon=3)},
        "r2": {"queue/q": log(x, y, events={2: 'Deq();Ok("x")'}, fence=1, horizon=1)},
        "r3": {"queue/q": log(z, events={2: 'Deq();Ok("x")', 5: 'Deq();Ok("y")'}, fence=3, horizon=3)},
    }
    (trace,) = traces_of(replies, "queue/q")
    assert drawn(trace) == [
        ["t1", '[Enq("x"); Ok()]', '[Enq("x"); Ok()]', ""],
        ["t2", "", '[Deq(); Ok("x")]', '[Deq(); Ok("x")]'],
        ["t3", '[Enq("y"); Ok()]', '[Enq("y"); Ok()]', ""],
        ["t4", '[Enq("z"); Ok()]', "", '[Enq("z"); Ok()]'],
        ["t5", '[Deq(); Ok("y")]', "", '[Deq(); Ok("y")]'],
    ]
    assert trace.footer() == [("horizon", ["t3", "t1", "t3"]), ("fence", ["t3", "t1", "t3"])]


def test_collected_logs_look_like_the_lecture() -> None:
    """The same operations with logs collected below the horizon; the entries at the horizon are gone too."""
    replies = {
        "r1": {"queue/q": log(entry(3, "z"), horizon=2, fence=2)},
        "r2": {"queue/q": log(entry(2, "y"), horizon=1, fence=1)},
        "r3": {"queue/q": log(entry(3, "z"), horizon=2, fence=2)},
    }
    (trace,) = traces_of(replies, "queue/q")
    assert drawn(trace) == [
        ["t2", "", '[Enq("y"); Ok()]', ""],
        ["t3", '[Enq("z"); Ok()]', "", '[Enq("z"); Ok()]'],
    ]
    assert trace.footer()[0] == ("horizon", ["t2", "t1", "t2"])


def test_unreachable_replica_leaves_its_column_blank_and_says_why() -> None:
    replies: dict[str, dict[str, Collected] | str] = {
        "r1": {"queue/q": log(entry(1, "x"))},
        "r2": "connection refused",
    }
    (trace,) = traces_of(replies, "queue/q")
    assert trace.columns["r2"].trouble == "connection refused"
    assert trace.footer() == [("horizon", ["0", ""]), ("fence", ["0", ""])]
    assert trace.as_json()["replicas"]["r2"] == {"reachable": False, "trouble": "connection refused"}


def test_object_that_nobody_knows_is_an_empty_table() -> None:
    (trace,) = traces_of({"r1": {"queue/q-other": log(entry(1, "x"))}, "r2": {}}, "queue/q")
    assert trace == Trace("queue/q", {"r1": Column(), "r2": Column()})
    assert trace.rows == []


def test_each_key_of_a_dictionary_gets_a_table() -> None:
    replies = {
        "r1": {"dictionary/d/a": log(entry(1, "x")), "dictionary/d/b": log(entry(2, None))},
        "r2": {"dictionary/d2/a": log(entry(3, "y"))},
    }
    traces = traces_of(replies, "dictionary/d")
    assert [trace.object for trace in traces] == ["dictionary/d/a", "dictionary/d/b"]
    assert drawn(traces[1]) == [["t1", "[Delete(); Ok()]", ""]]


def test_summary_shows_what_is_accepted_but_not_known_to_be_decided() -> None:
    (trace,) = traces_of(
        {"r1": {"queue/q": log(horizon=1, accepted=2)}, "r2": {"queue/q": log(horizon=1)}}, "queue/q"
    )
    assert ("accepted", ["t2", ""]) in trace.footer()


def test_decided_value_of_a_register_stands_below() -> None:
    summary = Summary(horizon=T[1], value=Value('"me"'), recent=(Decision("d", NO_BALLOT),))
    answer = Collected(Status(horizon=T[1]), summary=summary)
    (trace,) = traces_of({"r1": {"register/leader": answer}, "r2": {}}, "register/leader")
    assert ("decided", ['"me"', ""]) in trace.footer()


def test_adopted_entries_stand_below() -> None:
    answer = Collected(Status(), summary=Summary(adopted=(entry(2, "x"),)))
    (trace,) = traces_of({"r1": {"queue/q": answer}}, "queue/q")
    assert ("adopted", ["t1"]) in trace.footer()


def test_what_an_acquire_met_has_its_row_and_says_how_it_stands() -> None:
    """r1 knows of the decision, r2 does not yet: there the items wait in the log, but for one that is delayed."""
    now_us = 1_700_000_030_000_000
    held = Leased(entry(1, "x"), until_us=now_us + 1, deliveries=2, is_held=True)
    summary = Summary(horizon=T[2], leases=(held,), dead=(Dead(entry(2, "y"), "deliveries", 3),))
    delayed = Entry(entry_id(T[3], "", Times(now_us + 1)), T[3], Value('"z"'))
    replies = {
        "r1": {"queue/q": Collected(Status(horizon=T[2]), summary=summary, rows=(Row(delayed),))},
        "r2": {"queue/q": log(entry(1, "x"), entry(2, "y"), delayed)},
    }
    (trace,) = traces_of(replies, "queue/q", now_us=now_us)
    assert [[trace.cell(id, t) for id in replies] for t in trace.rows] == [
        [('[Enq("x"); Ok()]', "held until 22:13:51 UTC, delivery 2"), ('[Enq("x"); Ok()]', "")],
        [
            ('[Enq("y"); Ok()]', "dead letter: too many deliveries, delivered 3 times"),
            ('[Enq("y"); Ok()]', ""),
        ],
        [('[Enq("z"); Ok()]', "delayed until 22:13:51 UTC")] * 2,
    ]
    assert ("leases", ["1 held, 1 dead", ""]) in trace.footer()
    told = trace.as_json()
    assert told["rows"][0]["lease_statuses"]["r1"]["state"] == "held"
    assert told["replicas"]["r1"]["leases"] == {"held": 1, "waiting": 0, "dead": 1}


def test_log_longer_than_a_page_is_marked() -> None:
    full_page = log(entry(1, "x"), entry(2, "y"))
    assert column_of("queue/q", full_page, 2, 0).cut
    assert not column_of("queue/q", full_page, 3, 0).cut


def test_whole_timestamps_on_request() -> None:
    (trace,) = traces_of({"r1": {"queue/q": log(entry(2, "y"), horizon=1)}}, "queue/q")
    assert trace.footer(full=True)[0] == ("horizon", [str(T[1])])


def test_events_are_named_by_data_type() -> None:
    assert event_text("queue/q", entry(1, "x")) == '[Enq("x"); Ok()]'
    assert event_text("register/r", entry(1, "x")) == '[Write("x"); Ok()]'
    assert event_text("dictionary/d/k", entry(1, "x")) == '[Put("x"); Ok()]'
    assert event_text("queue/q", Entry("e", Timestamp(T[1]))) == "[Enq(…); Ok()]"
    assert (
        event_text("cart/ann", Entry("e", Timestamp(T[1]), Value('["add",["a",2]]'))) == '[add("a",2); Ok()]'
    )
    assert event_text("cart/ann", entry(1, "x")) == '["x"; Ok()]', "what somebody stored who is no front end"
    assert event_text("cart/ann", Entry("e", Timestamp(T[1]))) == "[…; Ok()]"


def test_decided_events_are_written_as_log_entries_are() -> None:
    assert decided_text('Deq();Ok("x")') == '[Deq(); Ok("x")]'
    assert decided_text("Deq();Ok(1); Deq();Ok(2)") == "[Deq(); Ok(1)] [Deq(); Ok(2)]"
    assert decided_text('Cas("a;)\\"","\\\\");Fail()') == '[Cas("a;)\\"","\\\\"); Fail()]'
