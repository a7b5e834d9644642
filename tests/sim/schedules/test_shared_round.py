"""Reads and writes of cells that begin at one moment share a round of messages, and each has an outcome of its own."""

from quorate.adts.log import Value
from quorate.api_specs.messages import Append, Collect
from quorate.client_sdk.protocol.core.answer_times import RESEND_S_FIRST
from quorate.client_sdk.protocol.core.values import CompareAndSet, Done, Failed, Operation, Read, Write
from quorate.client_sdk.protocol.operations.blind import HEDGE_S
from tests.sim.schedules.hand import Hand

A, B = "register/a", "dictionary/d/b"
X, Y, Z = Value("1"), Value("2"), Value("3")
BOTH: dict[str, Operation] = {"a": Write(A, X), "b": Write(B, Y)}
AHEAD_US = 10_000
REPLICAS = ("r1", "r2", "r3")


def hand_with_fences(*replicas: str) -> Hand:
    """At these replicas, A is fenced above all that f1 will stamp."""
    hand = Hand({})
    hand.wall_errors_us["fx"] = AHEAD_US
    hand.start("fx", CompareAndSet(A, Z, Z), "fencing")
    hand.carry("fx", *replicas)
    hand.drop("fx")
    hand.cancel("fx", "fencing")
    hand.outcomes.clear()
    return hand


def failed(hand: Hand, name: str) -> Failed:
    """How an operation ended that gave no answer."""
    outcome = hand.outcomes[name]
    assert isinstance(outcome, Failed)
    return outcome


def test_several_writes_are_one_send_to_each_replica_and_one_round() -> None:
    hand = Hand({})
    hand.start_all("f1", BOTH)
    assert [(each.send.replica, len(each.send.requests)) for each in hand.packets] == [
        (replica, 2) for replica in REPLICAS
    ]
    hand.carry("f1", "r1", "r2")
    assert [outcome.event_class for outcome in hand.outcomes.values() if isinstance(outcome, Done)] == [
        "Write/Ok",
        "Put/Ok",
    ]
    assert hand.outcomes["a"].answered == {"r1", "r2"}
    hand.settle()
    assert (hand.ask("f2", Read(A)), hand.ask("f2", Read(B))) == (X, Y)


def test_writes_of_one_cell_keep_the_order_of_their_callers() -> None:
    hand = Hand({})
    hand.start_all("f1", {str(number): Write(A, Value(str(number))) for number in range(5)})
    hand.settle()
    assert hand.ask("f2", Read(A)) == Value("4")


def test_a_write_that_all_fence_is_stamped_anew_and_holds_up_no_other() -> None:
    hand = hand_with_fences(*REPLICAS)
    hand.start_all("f1", BOTH)
    hand.carry("f1", *REPLICAS)
    assert isinstance(hand.outcomes["b"], Done)
    assert "a" not in hand.outcomes
    hand.settle()
    assert hand.counters("f1") == {"went on alone": 1, "stamped anew": 1}
    assert isinstance(hand.outcomes["a"], Done)
    assert hand.ask("f2", Read(A)) == X


def test_a_write_that_some_fence_is_recovered_alone() -> None:
    """One replica stores it and one refuses; the third is silent until it has had its time."""
    hand = hand_with_fences("r1")
    hand.start_all("f1", BOTH)
    hand.carry("f1", "r1", "r2")
    assert isinstance(hand.outcomes["b"], Done)
    assert "a" not in hand.outcomes
    hand.drop("f1")
    hand.sleep(int(HEDGE_S * 1e6))
    hand.settle()
    assert hand.counters("f1")["recoveries"] == 1
    assert isinstance(hand.outcomes["a"], Done)
    assert hand.ask("f2", Read(A)) == X


def test_one_that_is_refused_fails_alone_and_for_certain() -> None:
    """A register cannot be deleted: every replica says so, of this one."""
    hand = Hand({})
    hand.start_all("f1", {"a": Write(A, None), "b": Write(B, Y)})
    hand.carry("f1", "r1", "r2", "r3")
    assert (failed(hand, "a").reason, failed(hand, "a").definite) == ("refused", True)
    assert "only a dictionary" in failed(hand, "a").detail
    assert failed(hand, "a").answered == frozenset()
    assert isinstance(hand.outcomes["b"], Done)


def test_where_no_message_left_it_is_certain_of_each() -> None:
    """Nothing is under way when the time is over: requests go every second, on the half."""
    hand = Hand({})
    hand.start_all("f1", BOTH)
    hand.sleep(100_000)
    while len(hand.outcomes) < len(BOTH):
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    assert {(failed(hand, name).reason, failed(hand, name).definite) for name in BOTH} == {
        ("unavailable", True)
    }


def test_where_a_message_may_have_arrived_nobody_knows_of_any() -> None:
    hand = Hand({})
    hand.start_all("f1", BOTH)
    while len(hand.outcomes) < len(BOTH):
        hand.fail("f1", definite=False)
        hand.sleep()
    assert {(failed(hand, name).reason, failed(hand, name).definite) for name in BOTH} == {("unknown", False)}


def test_what_is_sent_again_is_judged_again_and_any_of_its_answers_will_do() -> None:
    hand = Hand({})
    hand.start_all("f1", BOTH)
    first, hand.packets = hand.packets, []
    hand.sleep(int(RESEND_S_FIRST * 1e6))
    hand.wake("f1")
    again = [request for packet in hand.packets for request in packet.send.requests]
    assert [each.attempt for each in again if isinstance(each, Append)] == ["first"] * 2 * len(REPLICAS)
    hand.packets = first
    hand.carry("f1", "r1", "r2")
    assert hand.outcomes.keys() == BOTH.keys()


def test_reads_of_one_cell_are_one_look() -> None:
    hand = Hand({})
    hand.ask("f1", Write(A, X))
    hand.start_all("f2", {"1": Read(A), "2": Read(A), "3": Read(B)})
    looks = [each.object for each in hand.packets[0].send.requests if isinstance(each, Collect)]
    assert looks == [A, B]
    hand.carry("f2", "r1", "r2")
    assert [hand.result(name) for name in ("1", "2", "3")] == [X, X, None]


def test_a_value_at_one_replica_alone_is_written_back_by_its_own_reader() -> None:
    hand = Hand({})
    hand.ask("f1", Write(B, Y))
    hand.carry_commits("f1", *REPLICAS)
    hand.start("fx", Write(A, X), "lost")
    hand.carry("fx", "r1")
    hand.drop("fx")
    hand.cancel("fx", "lost")
    hand.start_all("f2", {"a": Read(A), "b": Read(B)})
    hand.carry("f2", "r1", "r2")
    assert hand.result("b") == Y
    assert "a" not in hand.outcomes
    hand.settle()
    assert hand.result("a") == X
    assert hand.counters("f2") == {"went on alone": 1, "entries written back": 1}


def test_who_goes_away_leaves_the_others_to_it() -> None:
    hand = Hand({})
    hand.start_all("f1", BOTH)
    hand.cancel("f1", "a")
    hand.carry("f1", "r1", "r2")
    assert hand.outcomes.keys() == {"b"}


def test_when_all_have_gone_away_nothing_is_sent_any_more() -> None:
    hand = Hand({})
    hand.start_all("f1", BOTH)
    for name in BOTH:
        hand.cancel("f1", name)
    hand.drop("f1")
    hand.start("f1", Read(A), "read")
    hand.settle()
    hand.sleep(int(10 * RESEND_S_FIRST * 1e6))
    assert hand.packets == []
    assert hand.result("read") is None
