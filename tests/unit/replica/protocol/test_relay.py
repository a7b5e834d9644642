"""The steps by which items go from an outbox to its queue, and which outbox is looked at when."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.api_specs.commands import SettleResult
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.messages import Accept, Append, Collect, Commit, Request
from quorate.api_specs.outboxes import Outbox, Record
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    Done,
    Enqueue,
    Failed,
    LeaseBook,
    Operation,
    Outcome,
    ReadLeases,
    Settle,
    Spans,
)
from quorate.client_sdk.protocol.decisions.idempotency import KEY_TOO_OLD
from quorate.replica.protocol.relay import (
    AGAIN_S,
    AGAIN_S_MAX,
    ITEMS_MAX,
    KEYS_MAX,
    LOOK_S_MAX,
    PARTS,
    Found,
    Open,
    relay,
    step_s,
)
from tests.unit.client_sdk.protocol.stage import at, ballot
from tests.unit.client_sdk.scripted import document_of

OUTBOX: Final = Outbox("queue/mail", "r1")
NAME: Final = OUTBOX.name
ALL: Final = frozenset({"r1"})
SETTLED: Final = Done(SettleResult((), 0), "Ack/Ok", ALL)
ADDED: Final = Done(None, "Enq/Ok", ALL)
DOWN: Final = Failed("unavailable", "r2 and r3 are silent", definite=True)
REUSED: Final = Failed("key-reused", "another value", definite=True)


def lease(number: int, text: str) -> Leased:
    return Leased(Entry(f"e{number}", at(number), Value(text)), deliveries=1, is_held=True)


def acquired(*texts: str) -> Done:
    return Done(tuple(lease(number, text) for number, text in enumerate(texts)), "Acquire/Ok", ALL)


def played(
    *answers: Sequence[Outcome], limits: Limits = DEFAULTS
) -> tuple[list[list[Operation]], Found, str]:
    """The operations of each step, and what was found."""
    steps = relay(OUTBOX, limits)
    asked = [list(next(steps))]
    for place, outcomes in enumerate(answers):
        try:
            asked.append(list(steps.send(outcomes)))
        except StopIteration as stop:
            assert place == len(answers) - 1, "it ended before all was answered"
            return asked, *stop.value
    raise AssertionError(f"it has not ended: {asked[-1]}")


X, Y = Record("k/0", Value('"x"')), Record("k/1", Value('"y"'), 5, 1.0, 9.0)


def test_items_are_acquired_then_enqueued_under_their_keys_then_accepted() -> None:
    asked, found, _ = played([acquired(X.text(), Y.text())], [ADDED, ADDED], [SETTLED])
    assert found == "some"
    assert asked == [
        [Acquire(NAME, ITEMS_MAX, 3 * step_s(DEFAULTS), by_relay=True)],
        [
            Enqueue("queue/mail", (Value('"x"'),), "k/0", from_outbox=True),
            Enqueue("queue/mail", (Value('"y"'),), "k/1", Spans(1.0, 9.0, 5), from_outbox=True),
        ],
        [Settle(NAME, "ack", ("1/e0", "1/e1"))],
    ]


@pytest.mark.parametrize("outcome", [DOWN, Failed("unknown", "r2 and r3 are silent", definite=False)])
def test_what_is_not_known_to_be_in_the_queue_stays(outcome: Failed) -> None:
    asked, found, why = played([acquired(X.text(), Y.text())], [outcome, ADDED], [SETTLED, SETTLED])
    assert (found, why) == ("some", "r2 and r3 are silent"), "others may pass"
    assert asked[-1] == [Settle(NAME, "ack", ("1/e1",)), Settle(NAME, "release", ("1/e0",), AGAIN_S)]
    assert played([acquired(X.text())], [outcome], [SETTLED])[1:] == ("failed", "r2 and r3 are silent")


TOO_OLD: Final = Failed(KEY_TOO_OLD.reason, KEY_TOO_OLD.detail, KEY_TOO_OLD.definite)


def test_an_item_whose_key_is_too_old_is_enqueued_under_another_one() -> None:
    asked, found, _ = played(
        [acquired(X.text(), Y.text())], [TOO_OLD, ADDED], [SETTLED], [TOO_OLD], [], [ADDED], [SETTLED]
    )
    assert found == "some"
    assert [each.key for step in asked for each in step if isinstance(each, Enqueue)] == [
        *("k/0", "k/1"),
        "k/0~1",
        "k/0~2",
    ]
    assert asked[2] == [Settle(NAME, "ack", ("1/e1",))], "others do not wait for it"
    assert asked[6] == [Settle(NAME, "ack", ("1/e0",))]
    tries = [[TOO_OLD], []] * (KEYS_MAX - 1)
    asked, found, why = played([acquired(X.text())], *tries, [TOO_OLD], [SETTLED])
    assert (found, why) == ("failed", KEY_TOO_OLD.detail)
    (last,) = asked[-2]
    assert isinstance(last, Enqueue)
    assert last.key == "k/0~1/e0", "of this delivery alone"
    assert asked[-1] == [Settle(NAME, "release", ("1/e0",), AGAIN_S)]


def test_what_fails_again_and_again_lets_others_pass_for_longer_each_time() -> None:
    often = replace(lease(0, X.text()), deliveries=3)
    always = replace(lease(1, Y.text()), deliveries=99)
    found = Done((often, always, lease(2, X.text())), "Acquire/Ok", ALL)
    asked, _, _ = played([found], [DOWN, DOWN, DOWN], [SETTLED] * 3)
    assert asked[-1] == [
        Settle(NAME, "release", (often.token,), 4 * AGAIN_S),
        Settle(NAME, "release", (always.token,), min(AGAIN_S_MAX, DEFAULTS.retry_window_s / PARTS)),
        Settle(NAME, "release", ("1/e2",), AGAIN_S),
    ]


def test_what_comes_with_a_summary_is_looked_for() -> None:
    """Back from the dead letters, or by catch-up."""
    for summary, is_looked_for in (
        (Summary(leases=(lease(0, X.text()),)), True),
        (Summary(adopted=(Entry("e", at(1), X.text()),)), True),
        (Summary(), False),
    ):
        for request in (Accept(NAME, ballot(5), summary), Commit(NAME, ballot(5), summary=summary)):
            open_ = Open(cluster(), "r1")
            open_.note(request)
            assert open_.is_any == is_looked_for


def test_pauses_and_operations_are_short_beside_the_retry_window() -> None:
    """Else a key is forgotten between one try and the next."""
    small = Limits(retry_window_s=4.0, deadline_s_max=3.0, batch_items_max=5, consumed_lag_s=1.0)
    assert step_s(small) == 1.0
    assert played([DOWN], [DOWN], limits=small)[0][0] == [Acquire(NAME, 5, 3.0, by_relay=True)]
    open_ = Open(replace(cluster(), limits=small), "r1")
    open_.note(came())
    now_s = 0.0
    for _ in range(5):
        assert open_.due(now_s, 9) == [OUTBOX]
        open_.told(OUTBOX, "failed", "down", now_s)
        now_s += 1.0


def test_a_key_that_stands_for_another_value_stands_for_that_item() -> None:
    asked, found, _ = played([acquired(X.text())], [REUSED], [SETTLED])
    assert found == "some"
    assert asked[-1] == [Settle(NAME, "ack", ("1/e0",))]


def test_what_is_no_record_becomes_a_dead_letter() -> None:
    asked, found, _ = played([acquired('"stray"')], [], [SETTLED])
    assert found == "some"
    assert asked[1:] == [[], [Settle(NAME, "reject", ("1/e0",))]]


def book(*leases: Leased) -> Done:
    return Done(LeaseBook(leases, ()), "Book/Ok", ALL)


def test_it_is_empty_once_nothing_is_under_a_lease_either() -> None:
    asked, found, _ = played([acquired()], [book()])
    assert asked[1:] == [[ReadLeases(NAME)]]
    assert found == "empty"


def test_a_lease_of_who_died_is_ended() -> None:
    asked, found, _ = played([acquired()], [book(lease(1, X.text()))], [SETTLED])
    assert asked[2:] == [[Settle(NAME, "release", ("1/e1",))]]
    assert found == "some"


def test_what_waits_to_be_delivered_again_is_waited_for() -> None:
    waiting = replace(lease(1, X.text()), is_held=False)
    assert played([acquired()], [book(waiting)])[1:] == ("waiting", "")


def test_a_lease_that_leaves_no_room_is_ended() -> None:
    """Somebody else's, of an item as heavy as all leases together, kept all others waiting for as long as it ran."""
    full = Failed("too-many-leases", "leases have no room", definite=True)
    asked, found, why = played([full], [book(lease(1, X.text()))], [SETTLED])
    assert asked[2:] == [[Settle(NAME, "release", ("1/e1",))]]
    assert (found, why) == ("some", "")
    assert played([full], [book()])[1:] == ("failed", full.detail)


@pytest.mark.parametrize(
    "answers",
    [([DOWN], [DOWN]), ([acquired()], [DOWN]), ([acquired(X.text())], [ADDED], [DOWN])],
)
def test_what_cannot_be_done_is_told(answers: tuple[Sequence[Outcome], ...]) -> None:
    _, found, why = played(*answers)
    assert (found, why) == ("failed", DOWN.detail)


def cluster() -> ClusterDocument:
    return document_of("r1", "r2", "r3", choices=(ChoiceRule("queue/mail*", outbox=True),))


def came(name: str = NAME) -> Request:
    return Append(name, (Entry("e", at(1), X.text()),), "first")


def test_an_outbox_is_due_when_something_came_until_nothing_is_left() -> None:
    open_ = Open(cluster(), "r1")
    assert open_.due(0.0, 9) == []
    open_.note(came())
    open_.note(came())
    assert open_.is_any
    assert open_.due(0.0, 9) == [OUTBOX]
    assert open_.due(0.0, 9) == [], "it is being looked at"
    open_.told(OUTBOX, "some", "", 1.0)
    assert open_.due(1.0, 9) == [OUTBOX]
    open_.told(OUTBOX, "empty", "", 2.0)
    assert not open_.is_any


def test_what_comes_while_it_is_looked_at_is_looked_for_again() -> None:
    open_ = Open(cluster(), "r1")
    open_.note(came())
    assert open_.due(0.0, 9) == [OUTBOX]
    open_.note(came())
    assert open_.due(0.0, 9) == []
    open_.told(OUTBOX, "empty", "", 0.0)
    assert open_.due(0.0, 9) == [OUTBOX]


def test_what_failed_is_tried_less_and_less_often_whatever_comes() -> None:
    open_ = Open(cluster(), "r1")
    now_s, waits = 0.0, []
    open_.note(came())
    for _ in range(8):
        assert open_.due(now_s, 9) == [OUTBOX]
        open_.told(OUTBOX, "failed", "down", now_s)
        began_s = now_s
        while not open_._due.is_due(now_s):
            open_.note(came())
            assert open_.due(now_s, 9) == []
            now_s += AGAIN_S
        waits.append(now_s - began_s)
    assert waits[:3] == [AGAIN_S, 2 * AGAIN_S, 4 * AGAIN_S]
    assert LOOK_S_MAX < AGAIN_S_MAX, "what is behind is met before what failed is tried again"
    assert waits[-1] == LOOK_S_MAX
    assert open_.due(now_s, 9) == [OUTBOX]
    open_.told(OUTBOX, "some", "", now_s)
    assert open_.due(now_s, 9) == [OUTBOX]
    open_.told(OUTBOX, "failed", "down", now_s)
    assert open_.due(now_s + AGAIN_S, 9) == [OUTBOX], "the wait begins anew"


def test_an_outbox_is_stalled_since_something_was_relayed_last() -> None:
    open_ = Open(cluster(), "r1")
    open_.note(came())
    assert open_.due(1.0, 9) == [OUTBOX]
    open_.told(OUTBOX, "failed", "down", 2.0)
    assert open_.stalled_s(5.0) == {OUTBOX.name: 4.0}
    assert open_.due(2.0 + AGAIN_S, 9) == [OUTBOX]
    open_.told(OUTBOX, "some", "", 6.0)
    assert list(open_.stalled_s(7.0).values()) == [1.0]
    assert open_.due(7.0, 9) == [OUTBOX]
    open_.told(OUTBOX, "empty", "", 7.0)
    assert open_.stalled_s(8.0) == {}


def test_items_that_wait_hold_up_nobody() -> None:
    """Whatever comes meanwhile is looked for soon."""
    open_ = Open(cluster(), "r1")
    open_.note(came())
    now_s = 0.0
    for _ in range(9):
        assert open_.due(now_s, 9) == [OUTBOX]
        open_.told(OUTBOX, "waiting", "", now_s)
        assert open_.due(now_s, 9) == []
        now_s += AGAIN_S
    assert list(open_.stalled_s(now_s).values()) == [now_s]


def test_what_failed_first_makes_nobody_wait_for_longer_later() -> None:
    open_ = Open(cluster(), "r1")
    open_.note(came())
    now_s = 0.0
    looks: list[tuple[Found, float]] = [
        ("failed", AGAIN_S),
        ("failed", 2 * AGAIN_S),
        ("waiting", AGAIN_S),
        ("failed", AGAIN_S),
    ]
    for found, waited_s in looks:
        assert open_.due(now_s, 9) == [OUTBOX]
        open_.told(OUTBOX, found, "", now_s)
        assert open_.due(now_s + waited_s - 0.01, 9) == []
        now_s += waited_s


def test_where_a_part_failed_it_is_stalled() -> None:
    open_ = Open(cluster(), "r1")
    open_.note(came())
    assert open_.due(0.0, 9) == [OUTBOX]
    open_.told(OUTBOX, "some", "one of them is too large", 5.0)
    assert list(open_.stalled_s(6.0).values()) == [6.0]


def test_only_own_outboxes_count_and_only_what_adds_to_them() -> None:
    open_ = Open(cluster(), "r1")
    for name in ("queue/mail@r2", "queue/mail", "queue/other@r1"):
        open_.note(came(name))
    open_.note(Collect(NAME))
    open_.find(["queue/mail@r2", "queue/mail", "queue/other@r1"], 0.0)
    assert not open_.is_any


def test_what_came_before_this_process_is_found_by_its_name() -> None:
    open_ = Open(cluster(), "r1")
    open_.find([NAME, "queue/mail.b@r1"], 0.0)
    assert {*open_.due(0.0, 1), *open_.due(0.0, 1)} == {OUTBOX, Outbox("queue/mail.b", "r1")}
    assert open_.due(0.0, 1) == []
