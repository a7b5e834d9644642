"""Operations that observe: an answer rests on what a final quorum stores, or is written back first."""

import pytest

from quorate.adts.log import NOTHING, Entry, Summary, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import (
    Append,
    Appended,
    Collect,
    Collected,
    Row,
    Scan,
    Scanned,
    Status,
)
from quorate.client_sdk.protocol.core.rounds import SOON_S, Expired
from quorate.client_sdk.protocol.core.values import Done, Items, Listed, Read
from quorate.client_sdk.protocol.decisions.transitions import ConfirmCommand
from quorate.client_sdk.protocol.operations import observe
from quorate.client_sdk.protocol.operations.blind import HEDGE_S
from quorate.client_sdk.protocol.operations.observe import (
    Looks,
    collect,
    is_whole,
    items,
    read,
    word_of,
)
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    REPLICAS,
    Stage,
    at,
    ballot,
    complete,
    entry,
    shown,
)

CELL, KEY, QUEUE = "register/x", "dictionary/d/k", "queue/q"
OLD, NEW = entry(-20), entry(-10)
STORED, FENCED = Appended(Status(), (True,)), Appended(Status(), (False,))
EMPTY = shown()


def reading(name: str = CELL) -> Stage:
    stage = Stage()
    stage.play(read(Read(name), stage.task, stage))
    return stage


def test_a_value_that_a_final_quorum_shows_is_the_answer() -> None:
    stage = reading()
    stage.answer("r1", shown(Row(OLD), Row(NEW)))
    stage.answer("r2", shown(Row(NEW)))
    assert (stage.result.result, stage.result.event_class) == ("-10", "Read/Ok")
    assert stage.result.answered == {"r1", "r2"}
    assert len(stage.sends) == len(REPLICAS)


def test_a_value_that_may_be_at_too_few_is_written_back_before_it_is_the_answer() -> None:
    stage = reading()
    stage.answer("r1", shown(Row(NEW)))
    stage.answer("r2", EMPTY)
    assert stage.open_to("r3") == Append(CELL, (NEW,), "repair")
    stage.answer("r1", STORED)
    assert not stage.is_over
    stage.answer("r3", STORED)
    assert stage.result.result == "-10"
    assert stage.complete == [(CELL, (NEW.t,))]


def test_where_fences_keep_it_from_being_written_back_a_decision_settles_it_and_it_looks_again() -> None:
    stage = reading()
    stage.answer("r1", shown(Row(NEW)))
    stage.answer("r2", EMPTY)
    stage.answer_all(FENCED, "r2", "r3")
    stage.sleep(HEDGE_S)
    assert [asked.command for asked in stage.commands] == [ConfirmCommand()]
    stage.decide(None)
    stage.answer_all(shown(decided=ballot(1), summary=Summary(at(-5), Value("5"))), "r1", "r2")
    assert stage.result.result == "5"


def test_a_value_that_may_not_be_decided_is_confirmed() -> None:
    stage = reading()
    stage.answer("r1", Collected(Status(accepted=ballot(1)), summary=Summary(at(-5), Value("5"))))
    stage.answer("r2", EMPTY)
    assert [asked.command for asked in stage.commands] == [ConfirmCommand()]


def test_a_summary_that_a_final_quorum_is_seen_to_have_accepted_is_decided() -> None:
    stage = reading()
    accepted = Collected(Status(accepted=ballot(1)), summary=Summary(at(-5), Value("5")))
    stage.answer_all(accepted, "r1", "r2")
    assert stage.result.result == "5"


def test_the_answer_waits_until_the_values_timestamp_has_passed() -> None:
    """A write that begins after the read must get a higher one."""
    stage = reading()
    ahead = entry(1_000_000)
    stage.answer_all(shown(*complete(ahead)), "r1", "r2")
    stage.sleep(0.99)
    assert not stage.is_over
    stage.sleep(0.02)
    assert stage.result.result == str(1_000_000)


def test_a_timestamp_beyond_the_deadline_is_not_waited_for() -> None:
    stage = Stage(deadline_s=0.5)
    stage.play(read(Read(CELL), stage.task, stage))
    stage.answer("r1", shown(*complete(entry(1_000_000))))
    with pytest.raises(Expired, match="check the clocks"):
        stage.answer("r2", EMPTY)


def test_a_read_goes_by_the_words_of_its_data_type() -> None:
    assert [word_of(Read(name)) for name in (CELL, KEY)] == ["Read", "Get"]


def test_a_log_that_is_shown_in_part_is_asked_for_until_its_end() -> None:
    stage = Stage()
    needed = stage.choice_of(CELL).initial_of("Read")
    stage.play(collect(CELL, stage.task, stage, needed))
    part = shown(*complete(OLD), upto=OLD.t)
    assert not is_whole(part)
    assert not is_whole(Collected(Status(), more=True))
    stage.answer("r1", part)
    assert stage.open_to("r1").window.upto == OLD.t
    stage.answer("r2", EMPTY)
    assert not stage.is_over
    stage.answer("r1", shown(*complete(NEW)))
    assert stage.result == {"r1", "r2"}
    assert stage.cache_of(CELL).seen.keys() == {OLD.t, NEW.t}


def test_a_look_during_which_something_was_thrown_away_begins_again() -> None:
    stage = reading()
    stage.answer("r1", shown(Row(NEW)))
    stage.answer("r2", Collected(Status(floor=NEW.t)))
    assert isinstance(stage.open_to("r1"), Collect)
    assert not stage.is_over


def missed(*looks_s: float, last_s: float) -> Expired:
    """What comes of looks that end at these times and never agree, and of a last one that is not answered."""
    stage = Stage()
    looks = Looks("queue/q", stage.task)
    for look_s in looks_s:
        with looks.under_way():
            stage.sleep_alone(look_s)
    try:
        with looks.under_way():
            stage.sleep_alone(last_s)
            raise Expired("no answer", {"r1"})
    except Expired as expired:
        return expired


def test_looks_that_were_answered_and_never_agreed_are_told_from_replicas_that_are_silent() -> None:
    assert "changed during each of 3 looks" in missed(1.0, 1.0, 1.0, last_s=0.5).detail
    assert "no time was left for a second look" in missed(1.0, last_s=0.5).detail
    assert missed(1.0, last_s=5.0).detail == "no answer"


PREFIX = "dictionary/d"


def page(*cells: tuple[str, Row], more: bool = False) -> Scanned:
    return Scanned(tuple((f"{PREFIX}/{key}", shown(row)) for key, row in cells), more=more)


def listing(limits: Limits | None = None) -> Stage:
    stage = Stage(limits=limits or Limits())
    stage.play(items(Items(PREFIX), stage.task, stage))
    return stage


def test_items_are_what_two_looks_in_a_row_agree_on() -> None:
    stage = listing()
    both = page(("a", Row(OLD)), ("b", Row(NEW)), ("gone", Row(entry(-5, None))))
    stage.answer_all(both, "r1", "r2")
    assert not stage.is_over
    stage.answer_all(both, "r1", "r3")
    assert stage.result.result.items == {"a": "-20", "b": "-10"}
    assert stage.result.answered == {"r1", "r3"}


def test_a_key_that_changed_between_two_looks_needs_a_third() -> None:
    stage = listing()
    stage.answer_all(page(("a", Row(OLD))), "r1", "r2")
    stage.answer_all(page(("a", Row(NEW))), "r1", "r2")
    assert not stage.is_over
    stage.answer_all(page(("a", Row(NEW))), "r1", "r2")
    assert stage.result.result.items == {"a": "-10"}
    assert stage.counted["collected again"] == 1


def test_keys_that_were_never_set_come_and_go_between_two_looks_and_change_nothing() -> None:
    """As failing compare-and-sets leave them, and replicas forget them: whoever asks for ever new ones must not keep others from listing."""
    stage = listing()
    for key in ("asked-first", "asked-then"):
        absent = (f"{PREFIX}/{key}", Collected(Status(fence=at(-1), promised=at(-1))))
        stage.answer_all(Scanned((*page(("a", Row(OLD))).objects, absent), more=False), "r1", "r2")
    assert stage.result.result.items == {"a": "-20"}


def test_keys_of_which_nothing_is_being_decided_are_in_no_doubt() -> None:
    """As failing compare-and-sets under an idempotency key leave them."""
    stage = listing()
    for number in (1, 2):
        status = Status(promised=at(-1), accepted=ballot(-1))
        asked = (f"{PREFIX}/asked-{number}", Collected(status, summary=NOTHING))
        one, other = page(("a", Row(OLD))), Scanned((*page(("a", Row(OLD))).objects, asked), more=False)
        stage.answer("r1", other)
        stage.answer("r2", one)
    assert stage.result.result.items == {"a": "-20"}


def test_a_key_whose_newest_value_is_at_too_few_is_settled_before_it_is_shown() -> None:
    stage = listing()
    stage.answer("r1", page(("a", Row(NEW))))
    stage.answer("r2", page())
    settling = stage.open_to("r1")
    assert isinstance(settling, Collect)
    assert settling.object == f"{PREFIX}/a"


def test_a_long_dictionary_is_scanned_page_by_page() -> None:
    stage = listing()
    stage.answer("r1", page(("a", Row(OLD)), more=True))
    assert stage.open_to("r1") == Scan(f"{PREFIX}/", f"{PREFIX}/a", 200)
    stage.answer("r2", page(("a", Row(OLD)), ("b", Row(NEW))))
    assert all(isinstance(stage.open_to(replica), Scan) for replica in ("r1", "r3"))
    stage.answer("r1", page(("b", Row(NEW))))
    whole = page(("a", Row(OLD)), ("b", Row(NEW)))
    stage.answer_all(whole, "r1", "r2")
    assert stage.result.result.items == {"a": "-20", "b": "-10"}


def test_a_dictionary_that_is_too_large_to_list_is_refused() -> None:
    stage = listing(Limits(listing_bytes_max=200))
    heavy = Row(Entry(at(-9), at(-9), Value("1" * 201)))
    with pytest.raises(Expired) as caught:
        stage.answer("r1", page(("a", heavy)))
    assert (caught.value.limit, caught.value.is_refused) == ("listing-too-large", True)


def listed(values: dict[str, str], next: str = "") -> Listed:
    return Listed({key: Value(value) for key, value in values.items()}, next)


def paged(operation: Items) -> Stage:
    stage = Stage()
    stage.play(items(operation, stage.task, stage))
    return stage


def test_a_page_ends_where_the_first_of_a_quorum_does_that_has_more_to_show() -> None:
    """r2 has missed b, and shows c as its second key. What r1 shows there is not known yet."""
    stage = paged(Items(PREFIX, most=2))
    assert stage.open_to("r1") == Scan(f"{PREFIX}/", "", 2)
    for _ in range(2):
        stage.answer("r1", page(("a", Row(OLD)), ("b", complete(OLD)[0]), more=True))
        stage.answer("r2", page(("a", Row(OLD)), ("c", complete(OLD)[0]), more=True))
    assert stage.result.result == listed({"a": "-20", "b": "-20"}, "b")


def test_a_page_of_what_all_hold_goes_on_behind_its_last_key() -> None:
    stage = paged(Items(PREFIX, prefix="k", after="k1", most=2))
    assert stage.open_to("r1") == Scan(f"{PREFIX}/k", f"{PREFIX}/k1", 2)
    for _ in range(2):
        stage.answer("r1", page(("k2", Row(OLD)), ("k4", Row(OLD)), more=True))
        stage.answer("r3", page(("k2", Row(OLD)), ("k4", Row(OLD)), more=True))
    assert stage.result.result == listed({"k2": "-20", "k4": "-20"}, "k4")


def test_the_second_look_goes_as_far_as_the_first_though_keys_came_in_between() -> None:
    stage = paged(Items(PREFIX, most=1))
    stage.answer_all(page(("b", Row(OLD)), more=True), "r1", "r2")
    stage.answer_all(page(("a", Row(NEW)), more=True), "r1", "r2")
    assert stage.open_to("r1") == Scan(f"{PREFIX}/", f"{PREFIX}/a", 1)
    stage.answer_all(page(("b", Row(OLD)), more=True), "r1", "r2")
    for key, row in (("a", NEW), ("b", OLD)):
        stage.answer_all(page((key, Row(row)), more=True), "r1", "r2")
    assert stage.result.result == listed({"a": "-10"}, "a"), "a page of one key, for all that came in between"


def test_a_page_has_no_more_keys_than_asked_for_where_each_replica_lacks_some() -> None:
    stage = paged(Items(PREFIX, most=2))
    for _ in range(2):
        stage.answer("r1", page(("b", complete(OLD)[0]), ("d", Row(OLD)), more=True))
        stage.answer("r2", page(("a", complete(OLD)[0]), ("c", complete(OLD)[0]), more=True))
    assert stage.result.result == listed({"a": "-20", "b": "-20"}, "b")


def test_a_page_of_several_replies_has_no_more_keys_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "PAGE_OBJECTS", 2)
    stage = paged(Items(PREFIX, most=3))
    assert stage.open_to("r1") == Scan(f"{PREFIX}/", "", 2)
    for _ in range(2):
        for keys in ("ab", "cd"):
            stage.answer_all(page(*((key, Row(OLD)) for key in keys), more=True), "r1", "r2")
    assert stage.result.result == listed(dict.fromkeys("abc", "-20"), "c")


def test_what_went_behind_the_end_of_the_first_look_makes_no_page_the_last() -> None:
    """Only one look has gone farther."""
    stage = paged(Items(PREFIX, most=1))
    for is_more in (True, False):
        stage.answer_all(page(("a", Row(OLD)), more=is_more), "r1", "r2")
    assert stage.result.result == listed({"a": "-20"}, "a")


def test_the_last_page_says_that_there_is_no_next_one() -> None:
    stage = paged(Items(PREFIX, most=2))
    for _ in range(2):
        stage.answer_all(page(("a", Row(OLD)), ("b", Row(OLD))), "r1", "r2")
    assert stage.result.result == listed({"a": "-20", "b": "-20"}, "")


def test_a_page_of_large_values_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "PAGE_BYTES", 100)
    stage = paged(Items(PREFIX, most=50))
    heavy = Row(Entry(at(-9), at(-9), Value("1" * 101)))
    for _ in range(2):
        stage.answer_all(page(("a", heavy), more=True), "r1", "r2")
    assert stage.result.result == listed({"a": "1" * 101}, "a")


def test_a_replica_that_has_forgotten_a_key_does_not_end_what_others_show_of_it_in_the_same_look() -> None:
    stage = listing()
    stage.answer("r1", page(("a", Row(OLD))))
    stage.answer("r2", Scanned(((f"{PREFIX}/a", Collected(Status(floor=NEW.t))),)))
    assert isinstance(stage.open_to("r1"), Collect), "its value is at too few, and is settled"


def test_many_keys_are_judged_some_in_each_turn_by_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "KEYS_AT_ONCE", 1)
    stage = listing()
    before = page(*((key, Row(OLD)) for key in "abc"))
    stage.answer_all(before, "r1", "r2")
    for _ in range(2):
        assert len(stage.sends) == len(REPLICAS), "the next look waits for the judgement of this one"
        stage.sleep(SOON_S)
    assert len(stage.sends) == 2 * len(REPLICAS)
    stage.answer_all(before, "r1", "r2")
    stage.answer("r3", page(("a", Row(NEW)), ("d", Row(NEW))))
    stage.sleep(2 * SOON_S)
    assert stage.result.result.items == dict.fromkeys("abc", "-20")
    assert stage.result.answered == {"r1", "r2"}


def test_a_turn_judges_no_more_keys_than_take_some_milliseconds() -> None:
    """Each takes up to a tenth of a millisecond, and all other operations wait meanwhile."""
    stage = listing()
    stage.answer_all(page(*((f"k{number:03}", Row(OLD)) for number in range(300))), "r1", "r2")
    turns = 0
    while len(stage.sends) == len(REPLICAS):
        stage.sleep(SOON_S)
        turns += 1
    assert turns >= 2


def test_a_judgement_that_takes_until_the_deadline_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "KEYS_AT_ONCE", 1)
    stage = listing()
    stage.answer_all(page(("a", Row(OLD)), ("b", Row(OLD))), "r1", "r2")
    stage.sleep_alone(DEADLINE_S)
    with pytest.raises(Expired, match="no time was left") as caught:
        stage.sleep(0)
    assert caught.value.answered == {"r1", "r2"}
    assert not caught.value.is_refused


def test_a_look_may_begin_again_any_number_of_times() -> None:
    """A replica's floor rises between each two answers."""
    stage = Stage()
    needed = stage.choice_of(KEY).initial_of("Get")
    stage.play(collect(KEY, stage.task, stage, needed))
    for _ in range(1_500):
        stage.cache_of(KEY).lives += 1
        stage.answer_all(shown(Row(OLD)), "r1", "r2")
    assert isinstance(stage.open_to("r1"), Collect)
    stage.answer_all(shown(Row(OLD)), "r1", "r2")
    assert stage.result == {"r1", "r2"}


WEAK = ChoiceRule("*", consistency="eventual")


def test_with_eventual_consistency_the_first_replicas_newest_value_is_the_answer() -> None:
    """Though nobody else may store it, and its time is not over."""
    stage = Stage(WEAK)
    stage.play(read(Read(CELL), stage.task, stage))
    stage.answer("r2", shown(Row(OLD), Row(NEW)))
    assert stage.result == Done("-10", "Read/Ok", frozenset({"r2"}), is_weak=True)
    assert len(stage.sends) == len(REPLICAS)


def test_with_eventual_consistency_a_listing_is_what_the_first_replica_holds() -> None:
    stage = Stage(WEAK)
    stage.play(items(Items("dictionary/d"), stage.task, stage))
    gone = Entry(at(-5), at(-5), None)
    held = {"b": shown(Row(NEW)), "a": shown(Row(OLD)), "c": shown(Row(OLD), Row(gone))}
    stage.answer("r3", Scanned(tuple((f"dictionary/d/{key}", each) for key, each in held.items())))
    found = listed({"a": "-20", "b": "-10"})
    assert stage.result == Done(found, "Items/Ok", frozenset({"r3"}), is_weak=True)
