"""How a summary remembers idempotency keys."""

from collections.abc import Hashable

from quorate.adts.log import Decision, Entry, Value
from quorate.api_specs.limits import KEYED_ENTRIES_MAX
from quorate.client_sdk.protocol.decisions.idempotency import DIGEST_CHARS, Memory, decision_id, digest
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make

STAMP = make(1000, 0, "f")
ENTRY = Entry(STAMP, STAMP)


def added(memory: Memory, caller: Hashable, entries: int = 0, result: Value | None = None) -> int:
    """How many decisions of this kind the caller has room for, which are remembered then."""
    found, named = 0, (ENTRY,) * entries
    while found < 2000 and memory.has_room(caller, named, result):
        memory.add(caller, Decision("k", make_ballot(STAMP, 1), named, result=result))
        found += 1
    return found


def test_a_caller_has_no_more_decisions_remembered_than_are_left_for_others() -> None:
    memory = Memory(decisions_max=100, bytes_max=1)
    assert [added(memory, caller) for caller in ("one", "two", 3, "four", "one")] == [50, 25, 13, 6, 0]


def test_a_caller_has_no_more_items_remembered_than_are_left_for_others() -> None:
    memory = Memory(decisions_max=1000, bytes_max=1)
    assert added(memory, "one", entries=100) * 100 == KEYED_ENTRIES_MAX // 2
    assert added(memory, "two", entries=KEYED_ENTRIES_MAX // 2) == 1, "a first one may have all that is left"
    assert added(memory, "three", entries=1) == 0
    assert added(memory, "three") > 0, "who asks for no items is not bounded by those of others"


def test_a_caller_has_no_more_bytes_of_results_remembered_than_are_left_for_others() -> None:
    memory, wide = Memory(decisions_max=1000, bytes_max=1000), Value("x" * 100)
    assert [added(memory, caller, result=wide) for caller in ("one", "two", "three")] == [5, 3, 1]
    assert added(memory, "one") > 0, "what has no result is not bounded by the results of others"


def test_a_single_decision_has_room_whatever_it_weighs() -> None:
    memory = Memory(decisions_max=1000, bytes_max=1000)
    assert added(memory, "one", result=Value("x" * 5000)) == 1
    assert added(memory, "two", result=Value("x")) == 0


def test_a_key_is_remembered_for_one_kind_of_operation_and_no_key_not_at_all() -> None:
    assert decision_id("Deq", "k") != decision_id("Enq", "k")
    assert decision_id("Deq", "") == ""


def test_digests_tell_arguments_apart_and_are_short() -> None:
    digests = {digest("1"), digest("1", "2"), digest("12"), digest(None), digest(None, None)}
    assert len(digests) == 5
    assert {len(each) for each in digests} == {DIGEST_CHARS}
    assert digest("1", "2") == digest("1", "2")
