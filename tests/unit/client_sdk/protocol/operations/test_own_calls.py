"""Calls on objects of one's own types: which are answered from a look, and which are decided."""

from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import Summary, Value
from quorate.adts.plain_class import Json, PlainClass
from quorate.adts.specification import Response
from quorate.adts.types.catalogue import kept_type
from quorate.api_specs import values
from quorate.api_specs.cluster import ClockSettings, ClusterDocument
from quorate.api_specs.limits import ENTRY_BYTES, STATE_BYTES_MAX, Limits
from quorate.api_specs.messages import Accept, Append, Appended, Collect, Refused, Status
from quorate.client_sdk.protocol.core.rounds import Resolved, Task
from quorate.client_sdk.protocol.core.values import Done, Failed, Invoke, Operation, Repair, Write
from quorate.client_sdk.protocol.decisions import own_transitions
from quorate.client_sdk.protocol.decisions.transitions import Command, Fate, FoldCommand, RecoverCommand
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.client_sdk.protocol.operations import own_calls
from quorate.client_sdk.protocol.operations.own_calls import LOOK_BYTES_MAX, STORED_BYTES_MAX
from quorate.quorums.choices.choice import QuorumChoice
from tests.sim.schedules.hand import EXACT, Hand
from tests.support.own_types import Basket, Cart
from tests.unit.client_sdk.protocol.stage import REPLICAS, Stage, ballot, shown


class Notes:
    """What anybody noted, the value one deeper than the argument."""

    blind = ("add",)
    examples = {"note": (1, [2])}  # noqa: RUF012 - as users write it

    def __init__(self) -> None:
        self.notes: dict[str, list[Any]] = {"all": []}

    def add(self, note: Any) -> None:
        self.notes["all"].append(note)

    def count(self) -> int:
        return len(self.notes["all"])


NOTES = PlainClass(Notes)
CART = PlainClass(Cart)
OBJECT = "cart/ann"
ALL = ("r1", "r2", "r3")


def call(operation: str, *args: Any, key: str = "") -> Invoke:
    return Invoke(OBJECT, CART, CART.call(operation, *args), key)


def cluster(clock: ClockSettings = EXACT) -> Hand:
    return Hand({"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, types={"cart": "shop:Cart"}, clock=clock)


def asked(hand: Hand, front: str, operation: Invoke) -> str:
    """What the front end asks at first: "look", or "promise" for a decision."""
    hand.start(front, operation, f"asked at {hand.now_us}")
    (request, *_) = [packet.send.request for packet in hand.packets if packet.front == front]
    assert isinstance(request, Collect)
    hand.settle()
    return "look" if request.ballot is None else "promise"


def answer(**items: int) -> Response:
    return Response("Ok", (Json("{" + ",".join(f'"{item}":{n}' for item, n in items.items()) + "}"),))


def test_what_changes_nothing_is_answered_from_a_look_and_what_does_is_decided_from_then_on() -> None:
    hand = cluster()
    assert asked(hand, "f1", call("content")) == "look"
    assert hand.ask("f1", call("content")) == answer()
    assert all(not replica.store.states(0, 9) for replica in hand.replicas.values()), "a look makes no object"
    assert asked(hand, "f1", call("add", "a")) == "look", "nobody knows yet that it changes something"
    assert asked(hand, "f1", call("add", "b")) == "promise"
    assert asked(hand, "f1", call("content")) == "look"
    assert hand.ask("f2", call("content")) == answer(a=1, b=1)


def test_a_call_under_a_key_is_decided_since_it_may_be_a_repeat() -> None:
    hand = cluster()
    assert hand.ask("f1", call("add", "a", key="k")) == Response("Ok")
    assert asked(hand, "f2", call("add", "a", key="k")) == "promise"
    assert hand.ask("f2", call("content")) == answer(a=1)


def test_looks_at_large_states_and_with_large_arguments_are_decided() -> None:
    """A look is run where its answer comes in, of many callers in one turn of the event loop."""
    hand = cluster()
    hand.ask("f1", call("fill", LOOK_BYTES_MAX))
    assert asked(hand, "f1", call("content")) == "promise"
    fresh = cluster()
    assert asked(fresh, "f1", call("keep", "x" * (LOOK_BYTES_MAX + 1))) == "promise"
    assert asked(fresh, "f1", call("keep", ["x" * LOOK_BYTES_MAX])) == "promise"
    assert asked(fresh, "f1", call("keep", "x")) == "look"


def test_what_is_not_decided_is_decided_before_a_look_is_answered() -> None:
    hand = cluster()
    hand.ask("f1", call("add", "a"))
    hand.start("f1", call("add", "b"), "lost")
    hand.carry("f1", "r1", "r2")
    assert any(isinstance(packet.send.request, Accept) for packet in hand.packets)
    hand.carry("f1", "r1")
    hand.cancel("f1", "lost")
    hand.drop("f1")  # Nobody else hears of it.
    hand.start("f2", call("content"), "seen")
    hand.carry("f2", "r1", "r2")
    assert "seen" not in hand.outcomes, "one replica alone holds what it saw"
    hand.settle()
    seen = hand.outcomes["seen"]
    assert isinstance(seen, Done)
    assert hand.ask("f3", call("content")) == seen.result
    assert asked(hand, "f2", call("content")) == "look", "that look changed nothing of its own"


def test_code_that_fails_is_told_and_changes_nothing() -> None:
    hand = cluster()
    hand.start("f1", call("slip"), "slipped")
    hand.settle()
    failed = hand.outcomes["slipped"]
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.definite) == ("refused", True)
    assert hand.ask("f1", call("content")) == answer()


BASKET = PlainClass(Basket)


def put(*args: Any, key: str = "") -> Invoke:
    return Invoke(OBJECT, BASKET, BASKET.call("add", *args), key)


def arrive_clocks(hand: Hand, front: str) -> None:
    """The front end that measures its clock asks for the replicas' first."""
    while not any(isinstance(packet.send.request, Append) for packet in hand.packets):
        hand.carry(front, *ALL)


def state_at(hand: Hand, replica: str) -> str | None:
    (state,) = hand.replicas[replica].store.states(0, 9)
    return state[1].summary.value


def test_a_blind_call_is_stored_in_one_round_and_asks_nobody_first() -> None:
    """But the first one of a front end, which asks any one replica how large the state is."""
    hand = cluster()
    hand.start("f1", put("a"), "first")
    hand.carry("f1", "r3")
    hand.settle()
    hand.start("f1", put("a"), "put")
    assert [type(packet.send.request) for packet in hand.packets] == [Append] * 3
    hand.carry("f1", "r1")
    assert "put" not in hand.outcomes
    hand.carry("f1", "r2")
    assert isinstance(done := hand.outcomes["put"], Done)
    assert (done.result, done.event_class) == (Response("Ok"), "add/Ok")
    assert state_at(hand, "r1") is None, "nothing is decided"


def test_who_looks_at_stored_calls_decides_with_them_and_the_next_one_needs_not() -> None:
    hand = cluster()
    for item in ("a", "b", "a"):
        hand.ask("f1", put(item))
    assert hand.ask("f2", call("content")) == answer(a=2, b=1)
    assert state_at(hand, "r1") == '{"state":{"items":{"a":2,"b":1}},"version":1}'
    hand.start("f3", call("content"), "again")
    hand.carry("f3", "r1", "r2")
    assert isinstance(done := hand.outcomes["again"], Done)
    assert done.result == answer(a=2, b=1)


def test_who_stores_large_calls_learns_how_large_the_state_is() -> None:
    """Nobody looked: 150 calls of 4 KB made a state of 585 KB, which no call could change any more."""
    hand, text = cluster(), "x" * 3900
    for number in range(150):
        hand.start("f1", put(f"{number}{text}"), f"put {number}")
        hand.settle()
        hand.carry_commits("f1", *ALL)
    refused = [each for each in hand.outcomes.values() if isinstance(each, Failed)]
    assert refused
    assert all("keep less in one object" in each.detail for each in refused)
    assert len(state_at(hand, "r1") or "") < 1.5 * STATE_BYTES_MAX


def test_a_repair_goes_through_the_whole_log() -> None:
    """It took out one part of a long log, and did not say that more remained."""
    hand = Hand(
        {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, types={"cart": "shop:Cart"}, limits=Limits(page_entries_max=2)
    )
    for number in range(5):
        hand.ask("f1", Write(OBJECT, Value(f'["shine",[{number}]]')))
    told = hand.ask("f2", Repair(OBJECT, BASKET))
    assert [each.partition(" (")[0] for each in told] == [
        f'taken out of the log: ["shine",[{number}]]' for number in range(5)
    ]
    assert hand.ask("f2", call("content")) == answer()


def test_a_repair_that_ends_in_the_middle_tells_what_it_did_and_is_not_said_to_have_done_nothing() -> None:
    hand = Hand(
        {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, types={"cart": "shop:Cart"}, limits=Limits(page_entries_max=2)
    )
    for number in range(5):
        hand.ask("f1", Write(OBJECT, Value(f'["shine",[{number}]]')))
    hand.start("f2", Repair(OBJECT, BASKET), "repair")
    for _ in range(2):  # collect and accept: one part of the log
        hand.carry("f2", "r1", "r2")
    failed = failed_in_vain(hand, "f2", "repair")
    assert 'Done before:\ntaken out of the log: ["shine",[0]]' in failed.detail
    assert not failed.definite


def test_a_blind_call_under_a_key_is_decided_so_that_callers_of_either_class_know_it() -> None:
    """Where `blind` is put into a class while it is in use, a repeat by the other one was done again."""
    hand = cluster()
    assert hand.ask("f1", put("a", key="k")) == Response("Ok")
    assert hand.ask("f2", call("add", "a", key="k")) == hand.ask("f3", put("a", key="k")) == Response("Ok")
    assert hand.ask("f3", call("content")) == answer(a=1)


def test_a_blind_call_that_may_find_no_room_is_decided() -> None:
    hand = cluster()
    assert asked(hand, "f1", put("x" * STORED_BYTES_MAX)) == "promise"
    hand = cluster()
    hand.ask("f1", call("fill", STATE_BYTES_MAX - 100))
    hand.start("f1", put("y" * 200), "put")
    hand.settle()
    assert isinstance(failed := hand.outcomes["put"], Failed)
    assert "of 262144 at most: keep less in one object" in failed.detail


def failed_in_vain(hand: Hand, front: str, name: str) -> Failed:
    """How an operation ends whose front end reaches nobody from now on."""
    while name not in hand.outcomes:
        hand.drop(front)
        hand.sleep()
    failed = hand.outcomes[name]
    assert isinstance(failed, Failed)
    return failed


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "note",
    [nested(61), nested(33), [[]] * 300, "😀" * 1100],
    ids=["too-deep", "deep", "many-arrays", "more-bytes-than-characters"],
)
def test_a_blind_call_that_is_nested_deeply_or_takes_long_is_decided(note: Any) -> None:
    """Its state may be nested deeper than it is: stored, it stopped the object for all others (61). Many arrays take long to run."""
    hand = cluster()
    operation = Invoke(OBJECT, NOTES, NOTES.call("add", note))
    assert asked(hand, "f1", operation) == "look", (
        "it is decided where the look shows that it changes something"
    )
    is_done = isinstance(list(hand.outcomes.values())[-1], Done)
    assert is_done == (note != nested(61))
    assert hand.ask("f2", Invoke(OBJECT, NOTES, NOTES.call("count"))) == Response("Ok", (int(is_done),))


class Runs:
    """Each call is counted, in all objects together."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def keep(self, count: int) -> None:
        self.kept = [[]] * count
        RUNS.append("keep")

    def size(self) -> int:
        RUNS.append("size")
        return len(self.kept)


RUNS = list[str]()


def test_looks_at_many_large_states_run_in_as_many_turns_of_the_event_loop() -> None:
    """Twenty of them, with calls that were stored, held the loop for two seconds, since one message answered them all."""
    hand, found = cluster(), PlainClass(Runs)
    names = [f"cart/{number}" for number in range(5)]
    for name in names:
        hand.ask("f1", Invoke(name, found, found.call("keep", 60_000)))
    looks: dict[str, Operation] = {name: Invoke(name, found, found.call("size"), "key") for name in names}
    hand.start_all("f2", looks)
    RUNS.clear()
    hand.carry("f2", "r1", "r2")
    assert RUNS == ["size"]
    hand.sleep()
    assert RUNS == ["size"] * 2
    hand.settle()
    assert RUNS == ["size"] * 5
    assert all(isinstance(hand.outcomes[name], Done) for name in names)


def test_who_waits_in_vain_is_told_of_the_stored_calls_that_run_first() -> None:
    """It named healthy replicas alone, as if they had not answered."""
    hand = cluster()
    for item in "abc":
        hand.ask("f1", put(item))
    hand.start("f2", call("content", key="k"), "look")
    hand.carry("f2", "r1", "r2")
    failed = failed_in_vain(hand, "f2", "look")
    assert "; calls that were stored run first, 3 at least" in failed.detail


@pytest.mark.parametrize("front_end_error_s", [None, 0.0], ids=["alone", "in a round"])
def test_a_log_that_nobody_looks_at_is_run_by_those_who_fill_it(
    front_end_error_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for it: programs that stored one call each ended before, and nothing was ever run."""
    monkeypatch.setattr(own_calls, "FOLD_EVERY", 1)
    hand = cluster(ClockSettings(front_end_error_s=front_end_error_s))
    hand.start("f1", put("a"), "put")
    arrive_clocks(hand, "f1")
    hand.carry("f1", "r1", "r2")
    assert "put" not in hand.outcomes
    hand.settle()
    assert state_at(hand, "r1") == '{"state":{"items":{"a":1}},"version":1}'
    assert isinstance(hand.outcomes["put"], Done)


@pytest.mark.parametrize(
    ("wait_s", "waited_s"), [(own_calls.FOLD_WAIT_S, own_calls.FOLD_WAIT_S), (60.0, 10.0)]
)
def test_what_is_stored_is_done_though_nobody_can_decide(
    wait_s: float, waited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for half of the time left at most: its caller may give up at the deadline, too."""
    monkeypatch.setattr(own_calls, "FOLD_EVERY", 1)
    monkeypatch.setattr(own_calls, "FOLD_WAIT_S", wait_s)
    hand = cluster()
    hand.ask("f1", call("content"))
    hand.start("f1", put("a"), "put")
    hand.carry("f1", "r1", "r2")
    stored_us = hand.now_us
    while "put" not in hand.outcomes:
        hand.drop("f1")
        hand.sleep()
    assert isinstance(hand.outcomes["put"], Done)
    assert hand.now_us - stored_us == pytest.approx(waited_s * 1e6, abs=1000)


@pytest.mark.parametrize(("stored", "initial", "final"), [(1, 3, 1), (2, 2, 3)])
def test_stored_calls_are_run_only_where_a_decision_finds_its_quorums(
    stored: int, initial: int, final: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fence refused calls on their way: with Blind (0, 1), Call (3, 1) and one replica silent, 8 % of the outcomes were unknown."""
    choice = QuorumChoice(
        kept_type("cart"), dict.fromkeys(ALL, 1), {"Blind/Ok": (0, stored), "Call/Ok": (initial, final)}
    )
    monkeypatch.setattr(ClusterDocument, "choice_of", lambda _, name: choice)
    monkeypatch.setattr(own_calls, "FOLD_EVERY", 10**9)
    hand = cluster()
    for front in ("f1", "f2"):
        hand.ask(front, put("a"))
    hand.start("f2", put("b"), "on its way")
    late = [packet for packet in hand.packets if packet.send.replica != "r3"]
    hand.drop("f2")
    monkeypatch.setattr(own_calls, "FOLD_EVERY", 1)
    hand.start("f1", put("c"), "stored")
    hand.carry_until("stored", "f1", "r1", "r2")
    assert isinstance(hand.outcomes["stored"], Done)
    hand.packets = late
    hand.carry("f2", "r1", "r2")
    assert isinstance(hand.outcomes["on its way"], Done)
    hand.drop("f2")
    assert hand.ask("f3", call("content")) == answer(a=2, b=1, c=1)


@pytest.mark.parametrize("front_end_error_s", [None, 0.0], ids=["alone", "in a round"])
def test_whoever_does_not_know_how_large_the_state_is_makes_it_no_larger_than_it_may_be(
    front_end_error_s: float | None,
) -> None:
    """2,500 calls of 1 KB, each of a new front end, were all stored: the state was too large for anybody to look at."""
    hand = cluster(ClockSettings(front_end_error_s=front_end_error_s))
    hand.ask("f0", call("fill", STATE_BYTES_MAX - 5000))
    hand.ask("f1", put("a" * 3000))
    hand.ask("f2", call("keep", "x", key="k"))
    before = len(state_at(hand, "r1") or "")
    assert before > STATE_BYTES_MAX - 2500
    hand.start("f3", put("b" * 3000), "put")
    hand.settle()
    failed = hand.outcomes["put"]
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.definite) == ("refused", True)
    assert "keep less in one object" in failed.detail
    assert hand.ask("f4", put("c")) == Response("Ok"), "it has room for this one"
    assert len(state_at(hand, "r1") or "") == before


@pytest.mark.parametrize("operation", [put("a"), call("content")], ids=["stored", "looked"])
def test_of_many_that_meet_an_object_one_asks_what_it_is(operation: Invoke) -> None:
    """300 calls on a state of 200 KiB, begun together by a new client, had each replica send it 300 times: all outcomes were unknown."""
    hand = cluster()
    hand.start("f0", call("fill", LOOK_BYTES_MAX * 2, key="k"), "filled")
    hand.carry_until("filled", "f0", "r2", "r3")
    hand.drop("f0")
    hand.start_all("f1", {f"call {number}": operation for number in range(20)})
    assert len(hand.packets) == 3
    hand.start("f1", operation, "later")
    assert len(hand.packets) == 3
    hand.carry("f1", "r1")  # It is behind, and knows of no object.
    if operation.invocation.operation == "content":
        assert len(hand.packets) == 2
        hand.carry("f1", "r2")
        asked = [packet.send.request for packet in hand.packets if packet.send.replica != "r3"]
        assert all(
            isinstance(each, Collect) and each.known == hand.cache("f1", OBJECT).ballot for each in asked
        )
    assert len(hand.packets) > 3, "all go on, whoever else is silent"
    hand.settle()
    assert len(hand.outcomes) == 22
    assert all(isinstance(outcome, Done) for outcome in hand.outcomes.values())


def test_who_waited_for_a_look_that_showed_a_large_state_does_not_have_it_sent_again() -> None:
    hand = cluster()
    hand.ask("f0", call("fill", LOOK_BYTES_MAX * 2, key="k"))
    hand.start_all("f1", {f"call {number}": call("content") for number in range(20)})
    hand.carry("f1", "r2", "r3")
    asked = [packet.send.request for packet in hand.packets if packet.send.replica != "r1"]
    assert asked
    promises = [each for each in asked if isinstance(each, Collect) and each.ballot is not None]
    assert promises == asked, "they are decided together"
    hand.settle()
    assert all(isinstance(outcome, Done) for outcome in hand.outcomes.values())


@pytest.mark.parametrize("operation", [put("a"), call("content")], ids=["stored", "looked"])
def test_where_the_caller_of_the_one_that_asks_has_gone_the_next_one_asks(operation: Invoke) -> None:
    hand = cluster()
    hand.start_all("f1", {"first": operation, "second": operation, "third": operation})
    hand.drop("f1")
    hand.cancel("f1", "second")
    assert not hand.packets, "it has not asked"
    hand.cancel("f1", "first")
    assert len(hand.packets) == 3
    hand.settle()
    assert isinstance(hand.outcomes["third"], Done)


def test_who_waits_for_another_to_meet_an_object_waits_until_the_deadline_and_has_stored_nothing() -> None:
    hand = cluster()
    hand.start_all("f1", {"first": put("a"), "second": put("b")})
    while len(hand.outcomes) < 2:
        hand.drop("f1")
        hand.sleep()
    for outcome in hand.outcomes.values():
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.definite) == ("unavailable", True)
    assert hand.ask("f2", call("content")) == answer()


def test_who_had_the_calls_run_by_another_front_end_learns_the_state_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = FrontEnd.ask

    def ask(self: FrontEnd, name: str, command: Command, task: Task, **how: bool) -> Any:
        """As a coordinator does, which tells only that they have run."""
        if not isinstance(command, FoldCommand):
            return right(self, name, command, task, **how)
        return self._post(task, Resolved(None))

    monkeypatch.setattr(FrontEnd, "ask", ask)
    monkeypatch.setattr(own_calls, "FOLD_EVERY", 1)
    hand = cluster()
    hand.ask("f1", put("a"))
    hand.ask("f0", call("fill", STATE_BYTES_MAX - 200))
    assert hand.ask("f1", put("b")) == Response("Ok"), "it does not know yet"
    hand.start("f1", put("c" * 300), "put")
    hand.settle()
    assert isinstance(failed := hand.outcomes["put"], Failed)
    assert "keep less in one object" in failed.detail


def test_where_values_are_small_so_are_states_for_which_calls_are_stored() -> None:
    choice = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
    hand = Hand(choice, types={"cart": "shop:Cart"}, limits=Limits(value_bytes_max=65_536))
    hand.ask("f1", call("fill", 33_000))
    assert asked(hand, "f1", put("x")) == "promise"


def test_who_decides_is_not_held_up_by_those_who_store() -> None:
    """Each look showed a call that was stored since, with a later timestamp, and was begun again: 200 times, without an answer."""
    hand = cluster()
    hand.start("f1", call("keep", "x", key="k"), "asked")
    for number in range(4):
        hand.start("f2", put("a"), f"put {number}")
        hand.carry("f2", "r1", "r2", "r3")
        hand.carry("f1", "r1", "r2", "r3")
        if "asked" in hand.outcomes:
            break
    assert isinstance(hand.outcomes["asked"], Done)
    hand.settle()
    assert hand.ask("f3", call("content")) == answer(a=number + 1)


def test_who_has_stored_a_call_does_not_begin_again_where_the_configuration_changes_while_the_log_is_run() -> (
    None
):
    """It would be stored twice."""
    stage = Stage()
    stage.play(own_calls.run_log(replace(put("a"), object="queue/q"), stage.task, stage))
    assert stage.waiting == set(REPLICAS)
    stage.reconfigure("r1", "r4", "r5")
    assert stage.is_over
    assert stage.result is None


def test_a_call_that_may_be_stored_is_not_decided_though_the_state_is_found_to_be_large() -> None:
    """It would run twice, or its caller be told for certain that it did not."""
    stage = Stage()
    stage.play(own_calls.invoke(replace(put("a"), object="queue/q"), stage.task, stage))
    stage.answer("r1", shown())
    assert isinstance(stage.open_to("r1"), Append)
    large = Summary(value=Value("x" * STATE_BYTES_MAX))
    stage.cache_of("queue/q").absorb("r2", "i", Collect("queue/q"), shown(decided=ballot(-1), summary=large))
    stage.answer("r1", Appended(Status(), (True,)))
    stage.answer_all(Refused("too-old", "this store was made from others"), "r2", "r3")
    assert not stage.commands
    assert isinstance(stage.result, Failed)
    assert (stage.result.reason, stage.result.definite) == ("unknown", False)


def test_a_call_that_a_decision_has_no_room_for_has_those_run_that_wait() -> None:
    """Nobody else may: they are adopted, in no log, and the calls of others are refused or recovered as this one is."""
    stage = Stage()
    stage.play(own_calls.invoke(replace(put("a"), object="queue/q"), stage.task, stage))
    stage.answer("r1", shown())
    (sent,) = stage.open_to("r1").entries
    stage.answer("r1", Appended(Status(), (True,)))
    stage.answer_all(Appended(Status(), (False,)), "r2", "r3")
    stage.sleep(0.1)
    (asked,) = stage.commands
    assert asked.command == RecoverCommand(sent, may_be_complete=False, is_to_run=True)
    stage.decide(Fate.UNKNOWN)
    stage.answer_all(shown(), *REPLICAS)
    assert [each.command for each in stage.commands] == [FoldCommand(BASKET)]


FEW = Limits(value_bytes_max=6000)
"""A state of 3,000 bytes at most for which calls are stored, and 1,000 bytes of calls that wait at each replica: a handful."""
TIMINGS = pytest.mark.parametrize("front_end_error_s", [None, 0.0], ids=["alone", "in a round"])


def few(
    monkeypatch: pytest.MonkeyPatch, front_end_error_s: float | None, blind: int, initial: int, final: int
) -> Hand:
    """A cluster with such bounds and quorums of these sizes, where nobody has the log run unless there is no room."""
    choice = QuorumChoice(
        kept_type("cart"), dict.fromkeys(ALL, 1), {"Blind/Ok": (0, blind), "Call/Ok": (initial, final)}
    )
    monkeypatch.setattr(ClusterDocument, "choice_of", lambda _, name: choice)
    monkeypatch.setattr(own_calls, "is_to_run_log", lambda *_: False)
    clock = ClockSettings(front_end_error_s=front_end_error_s)
    return Hand({}, types={"cart": "shop:Cart"}, clock=clock, limits=FEW)


def run(hand: Hand, front: str, operation: Invoke, silent: str, *, is_down: bool) -> Done | Failed:
    """How an operation ends while a replica is silent, or down: no connection can be made."""
    name = f"{front} at {hand.now_us}"
    hand.start(front, operation, name)
    while name not in hand.outcomes:
        lost = [packet for packet in hand.packets if packet.send.replica == silent]
        hand.packets = [packet for packet in hand.packets if packet not in lost]
        others = {packet.send.replica for packet in hand.packets if packet.front == front}
        hand.packets, kept = lost if is_down else [], hand.packets
        if is_down and lost:
            hand.fail(front, definite=True)
        hand.packets += kept
        if others:
            hand.carry(front, min(others))
        else:
            hand.sleep()
    hand.carry_commits(front, *(name for name in ALL if name != silent))
    outcome = hand.outcomes[name]
    assert isinstance(outcome, Done | Failed)
    return outcome


@TIMINGS
@pytest.mark.parametrize("is_down", [True, False], ids=["down", "silent"])
def test_calls_that_nobody_can_run_are_refused_before_they_stop_the_object(
    front_end_error_s: float | None, monkeypatch: pytest.MonkeyPatch, *, is_down: bool
) -> None:
    """With Call (3, 1) and one replica silent, 330 calls of 4 KiB were all stored, and made a state that no call could be run on: the object stood
    still, though all replicas were back, until an operator took calls out."""
    hand = few(monkeypatch, front_end_error_s, blind=1, initial=3, final=1)
    hand.ask("f0", call("content"))
    ends = [
        run(hand, f"f{number % 2}", put(f"{number}" + "x" * 100), "r3", is_down=is_down)
        for number in range(40)
    ]
    stored = sum(isinstance(each, Done) for each in ends)
    assert 2 <= stored <= 6
    refused = [each for each in ends if isinstance(each, Failed)]
    unsure = [each for each in refused if not each.definite]
    assert len(unsure) <= (0 if is_down else 2), "each front end may find out once"
    assert {each.reason for each in refused if each.definite} == {"log-full"}
    hand.packets.clear()
    shown = hand.ask("f2", call("content"))
    assert shown.condition == "Ok"
    assert stored <= str(shown.results[0]).count('xxx":1') <= stored + len(unsure)
    assert hand.ask("f3", put("y")) == Response("Ok"), "there is room again"


@TIMINGS
def test_where_there_is_no_room_the_calls_that_wait_run_first(
    front_end_error_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = few(monkeypatch, front_end_error_s, blind=2, initial=2, final=2)
    for number in range(30):
        hand.start(f"f{number % 2}", put("a" * 100), f"put {number}")
        hand.settle()
    assert all(isinstance(each, Done) for each in hand.outcomes.values())
    assert hand.ask("f3", call("content")) == answer(**{"a" * 100: 30})


def test_of_many_calls_without_room_one_has_those_run_that_wait_and_a_few_go_on_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of hundreds looked, had them run and was sent again, until their deadlines: replicas took different ones, and most outcomes were unknown."""
    hand = few(monkeypatch, None, blind=2, initial=2, final=2)
    making, storing = _under_way(monkeypatch, "_finds_quorums"), _under_way(monkeypatch, "_stored")
    names = [f"put {number}" for number in range(40)]
    hand.ask("f1", put("a" * 100))
    hand.start_all("f1", dict.fromkeys(names, put("a" * 100)))
    hand.settle()
    assert all(isinstance(hand.outcomes[name], Done) for name in names)
    assert hand.ask("f3", call("content")) == answer(**{"a" * 100: 41})
    assert max(making) == 1
    assert 1 < max(storing) <= FEW.waiting_bytes_max(3) // (ENTRY_BYTES + 100)


def _under_way(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """How many of these steps were under way, each time that some began."""
    real, numbers, found = getattr(own_calls, name), [0], list[int]()

    def steps(*args: Any) -> Any:
        numbers[0] += 1
        found.append(numbers[0])
        try:
            return (yield from real(*args))
        finally:
            numbers[0] -= 1

    monkeypatch.setattr(own_calls, name, steps)
    return found


def test_a_call_that_has_no_turn_to_be_stored_was_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = few(monkeypatch, None, blind=2, initial=2, final=2)
    hand.ask("f1", put("a" * 100))
    names = [f"put {number}" for number in range(40)]
    hand.start_all("f1", dict.fromkeys(names, put("a" * 100)))
    for replica in ALL:
        hand.carry("f1", replica)
    while not all(name in hand.outcomes for name in names):
        hand.drop("f1")
        hand.sleep()
    ends = [hand.outcomes[name] for name in names]
    stored = sum(isinstance(each, Done) for each in ends)
    assert 0 < stored < 10
    refused = [each for each in ends if isinstance(each, Failed)]
    assert {(each.reason, each.definite) for each in refused} == {("log-full", True)}
    hand.packets.clear()
    assert hand.ask("f3", call("content")) == answer(**{"a" * 100: 1 + stored})


def test_while_calls_that_wait_cannot_be_run_one_finds_out_for_those_who_wait_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = list[Task]()

    def finds_none(_operation: Invoke, until_s: float, task: Task, _machine: Any) -> Any:
        found.append(task)
        while task.now.mono_s < until_s:
            yield until_s
        return False

    monkeypatch.setattr(own_calls, "_finds_quorums", finds_none)
    hand, names = _full(monkeypatch)
    hand.settle()
    assert [hand.outcomes[name] for name in names] == [own_calls.WAITING] * len(names)
    assert 1 < len(found) < len(names) / 2


def test_a_call_that_waits_behind_others_until_its_deadline_was_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck = Failed("unknown", "some replica stores it", definite=False)

    def stuck_at_some(_operation: Invoke, _text: Value, task: Task, _machine: Any) -> Any:
        while not task.is_late:
            yield task.deadline_s
        return stuck

    monkeypatch.setattr(own_calls, "_stored", stuck_at_some)
    hand, names = _full(monkeypatch)
    hand.sleep()
    ends = [hand.outcomes[name] for name in names]
    few_of_them = ends.index(own_calls.WAITING)
    assert few_of_them == FEW.waiting_bytes_max(3) // (ENTRY_BYTES + len('["add",["a",1]]'))
    assert ends == [stuck] * few_of_them + [own_calls.WAITING] * (len(ends) - few_of_them)


def _full(monkeypatch: pytest.MonkeyPatch) -> tuple[Hand, list[str]]:
    """A front end that knows that replicas have no room, and twenty calls that it begins."""
    hand = few(monkeypatch, None, blind=2, initial=2, final=2)
    hand.ask("f1", call("content"))
    hand._fronts["f1"].cache_of(OBJECT).is_full = True
    names = [f"put {number}" for number in range(20)]
    hand.start_all("f1", dict.fromkeys(names, put("a")))
    return hand, names


@pytest.mark.parametrize(("part", "step"), [(1, "promise"), (10**6, "look")])
def test_a_blind_call_on_a_state_that_is_too_much_work_is_decided(
    part: int, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waits would take more than all the room."""
    monkeypatch.setattr(values, "WORK_OF_A_WAITING_BYTE", part)
    hand = few(monkeypatch, None, blind=2, initial=2, final=2)
    hand.ask("f1", call("fill", 1500))
    hand.start("f1", put("a"), "put")
    asks = {type(request) for packet in hand.packets for request in packet.send.requests}
    assert asks == ({Collect} if step == "promise" else {Append})


def test_what_some_store_and_others_have_no_room_for_is_done_once_the_others_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It cannot be taken back. Nobody else may have the calls run that are in the way."""
    hand = few(monkeypatch, None, blind=3, initial=1, final=3)
    hand.ask("f1", call("content"))
    for number in range(9):  # At r1 and r2 alone.
        hand.start("f1", put(f"{number}" + "x" * 100), f"at two {number}")
        for replica in ("r1", "r2"):
            hand.carry("f1", replica)
        hand.cancel("f1", f"at two {number}")
        hand.drop("f1")
    hand.start("f2", put("last"), "last")
    hand.settle()
    assert isinstance(hand.outcomes["last"], Done)
    assert '"last":1' in str(hand.ask("f3", call("content")).results[0])


def test_who_looks_is_answered_though_others_store_more_than_a_decision_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who had to run ever more of them never came to an end."""
    hand = few(monkeypatch, None, blind=2, initial=2, final=2)
    monkeypatch.setattr(own_transitions, "FOLDED_MAX", 1)
    monkeypatch.setattr(own_calls.Room, "make", lambda self, task: _in_vain())
    hand.ask("f2", put("a"))
    hand.start("f1", call("keep", "x", key="k"), "asked")
    stored = 0
    for number in range(60):
        names = [f"put {number} {each}" for each in range(2)]
        hand.start_all("f2", dict.fromkeys(names, put("a")))
        hand.arrive("f2")
        stored += sum(isinstance(hand.outcomes.get(name), Done) for name in names)
        hand.arrive("f1")
        hand.carry_commits("f1", *ALL)
        if "asked" in hand.outcomes:
            break
    assert isinstance(hand.outcomes["asked"], Done)
    assert stored > 5


def _in_vain() -> Any:
    """As where others fill the room at once."""
    yield from ()
    return False
