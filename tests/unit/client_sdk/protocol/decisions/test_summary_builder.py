"""A summary while it changes: what it remembers, how long, and whose decisions led to it."""

from msgspec.structs import replace

from quorate.adts.log import NOTHING, Decision, Entry, Seen, Value
from quorate.client_sdk.protocol.decisions.summary_builder import SummaryBuilder, is_included
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.protocol.decisions.test_transitions import CONTEXT

T = make(5, 0, "f")
ENTRY = Entry(T, T, Value("1"))


def test_what_changes_nothing_is_the_summary_of_before() -> None:
    assert SummaryBuilder(NOTHING, CONTEXT).finish(set()) is NOTHING


def test_word_is_left_only_of_an_entry_that_is_not_known_to_be_complete() -> None:
    builder = SummaryBuilder(NOTHING, CONTEXT)
    builder.pass_over(Seen(ENTRY, {"r1"}, True))
    assert (builder.horizon, builder.ambiguous) == (T, {})
    builder.note_taken(Seen(ENTRY, {"r1"}, False))
    assert builder.ambiguous == {ENTRY.id: CONTEXT.ballot}


def test_a_key_has_room_until_as_many_are_remembered_as_may_be() -> None:
    builder = SummaryBuilder(NOTHING, replace(CONTEXT, recent_max=1))
    assert builder.has_room_for(0, "k")
    builder.note_keyed(0, "k")
    assert not builder.has_room_for(1, "other")
    assert builder.has_room_for(1, "")
    assert builder.keyed("k") is not None
    assert builder.keyed("other") is None


def test_keys_of_one_batch_and_of_before_count_for_who_asked() -> None:
    context = replace(CONTEXT, recent_max=4, callers="aabb", asker_of=lambda decision: decision.id[0])
    before = replace(NOTHING, recent=(Decision("a", CONTEXT.ballot),))
    builder = SummaryBuilder(before, context)
    rooms = []
    for place in range(4):
        rooms.append(builder.has_room_for(place, "k"))
        if rooms[-1]:
            builder.note_keyed(place, "k")
    assert rooms == [True, False, True, False], "one of before and a new one; and one of what is left then"


def test_a_decision_is_included_in_what_the_same_turn_decided_later() -> None:
    builder = SummaryBuilder(NOTHING, CONTEXT)
    builder.horizon = T
    builder.note_changed()
    summary = builder.finish(set())
    assert is_included(summary, CONTEXT.ballot)
    assert is_included(summary, make_ballot(make(9, 0, "other"), 1)) is False
