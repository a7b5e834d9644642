"""Enqueues that begin together, by hand: what they share, and what becomes of one whose key somebody else began."""

from quorate.adts.log import Value
from quorate.api_specs.messages import Append, Reserve
from quorate.client_sdk.protocol.core.values import Dequeue, Done, Enqueue, Failed, Spans
from tests.sim.schedules.hand import Hand

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
QUEUE = "queue/q"
EVERYONE = ("r1", "r2", "r3")


def enqueue(value: str, key: str, spans: Spans = Spans()) -> Enqueue:  # noqa: B008 - it cannot change
    return Enqueue(QUEUE, (Value(value),), key, spans)


def taken(hand: Hand) -> list[str]:
    return [str(value) for value in hand.ask("f9", Dequeue(QUEUE, 20))]


def sent(hand: Hand) -> list[tuple[str, str, int]]:
    """To whom, which request, and of how many keys or entries."""
    found: list[tuple[str, str, int]] = []
    for packet in hand.packets:
        (request,) = packet.send.requests
        assert isinstance(request, Reserve | Append)
        named = request.proposals if isinstance(request, Reserve) else request.entries
        found.append((packet.send.replica, type(request).__name__, len(named)))
    return found


def are_done(hand: Hand) -> bool:
    return all(isinstance(outcome, Done) for outcome in hand.outcomes.values())


def test_they_share_two_messages_to_each_replica_and_keep_their_order() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", f"k{n}") for n in range(5)})
    assert sent(hand) == [(replica, "Reserve", 5) for replica in EVERYONE]
    hand.carry("f1", *EVERYONE)
    assert sent(hand) == [(replica, "Append", 5) for replica in EVERYONE]
    hand.settle()
    assert are_done(hand)
    assert taken(hand) == ["0", "1", "2", "3", "4"]


def test_without_keys_they_share_one_append_and_keep_their_order() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", "") for n in range(5)})
    assert sent(hand) == [(replica, "Append", 5) for replica in EVERYONE]
    hand.cancel("f1", "3")
    hand.settle()
    assert are_done(hand)
    assert taken(hand) == ["0", "1", "2", "3", "4"]


def test_one_that_nobody_waits_for_any_more_is_not_driven() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", "") for n in range(2)})
    for name in ("0", "1"):
        hand.cancel("f1", name)
    hand.settle()
    assert hand.outcomes == {}


def test_with_a_replica_down_they_are_agreed_in_a_second_round_that_they_share() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", f"k{n}") for n in range(3)})
    for name in ("0", "1", "2"):
        hand.carry_until(name, "f1", "r1", "r2")
    assert are_done(hand)
    assert hand.counters("f1")["keys agreed in two rounds"] == 1
    assert hand.counters("f1").get("went on alone", 0) == 0
    hand.drop("f1")
    assert taken(hand) == ["0", "1", "2"]


def test_one_that_another_front_end_began_goes_on_alone_and_is_there_once() -> None:
    hand = Hand(MAJORITIES)
    hand.start("f2", enqueue("7", "shared"), "before")
    hand.carry("f2", *EVERYONE)  # Its entries are agreed, and not stored yet.
    hand.start_all("f1", {"own": enqueue("8", "own"), "shared": enqueue("7", "shared")})
    hand.settle()
    assert are_done(hand)
    assert hand.counters("f1")["went on alone"] == 1
    assert sorted(taken(hand)) == ["7", "8"]


def test_one_whose_key_was_used_for_something_else_fails_alone() -> None:
    hand = Hand(MAJORITIES)
    hand.ask("f2", enqueue("7", "used"))
    hand.start_all("f1", {"fine": enqueue("8", "fine"), "wrong": enqueue("9", "used")})
    hand.settle()
    wrong = hand.outcomes["wrong"]
    assert isinstance(wrong, Failed)
    assert (wrong.reason, wrong.definite) == ("key-reused", True)
    assert isinstance(hand.outcomes["fine"], Done)
    assert taken(hand) == ["7", "8"]


def test_the_same_key_twice_at_one_moment_is_done_once() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {"a": enqueue("7", "k"), "b": enqueue("7", "k"), "c": enqueue("8", "l")})
    hand.settle()
    assert are_done(hand)
    assert sorted(taken(hand)) == ["7", "8"]


def test_those_that_are_due_at_another_time_go_apart() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {"now": enqueue("7", "k"), "later": enqueue("8", "l", Spans(delay_s=60.0))})
    assert sent(hand) == [(replica, "Reserve", 1) for replica in EVERYONE] * 2


def test_one_that_is_cancelled_leaves_the_others_to_it() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", f"k{n}") for n in range(3)})
    hand.cancel("f1", "1")
    hand.settle()
    assert are_done(hand)
    assert {"0", "2"} <= set(taken(hand))


def test_without_a_quorum_all_fail_for_certain_while_nothing_can_be_stored() -> None:
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", f"k{n}") for n in range(3)})
    hand.carry("f1", "r1")
    while "2" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    told = [hand.outcomes[name] for name in ("0", "1", "2")]
    assert [(each.reason, each.definite) for each in told if isinstance(each, Failed)] == [
        ("unavailable", True)
    ] * 3


def test_those_that_a_fence_refuses_go_on_side_by_side() -> None:
    """Their keys are agreed; then a later item is enqueued and taken, which fences all of them. One decision says what becomes of
    all; one after another would take as many rounds as there are."""
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {f"{n}": enqueue(f"{n}", f"k{n}") for n in range(20)})
    hand.carry("f1", *EVERYONE)
    for name, operation in (("late", Enqueue(QUEUE, (Value("99"),))), ("first", Dequeue(QUEUE))):
        hand.start("f2", operation, name)
        hand.carry_until(name, "f2", *EVERYONE)
    assert hand.result("first") == ("99",)
    rounds = 0
    while len(hand.outcomes) < 22:
        rounds += 1
        if any(packet.front == "f1" for packet in hand.packets):
            hand.carry(
                "f1", *sorted({packet.send.replica for packet in hand.packets if packet.front == "f1"})
            )
        else:
            hand.sleep()
    assert are_done(hand)
    assert rounds < 20
    assert sorted(map(int, taken(hand))) == list(range(20))
