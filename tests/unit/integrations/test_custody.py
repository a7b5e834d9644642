"""What a consumer holds, without threads and replicas: room, turns, tags, endings and renewals."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quorate.client_sdk import Lease
from quorate.integrations.custody import HELD_MAX, Custody, Ending, Held

RENEW_AFTER_S = 10.0


def leased(*values: str) -> list[Lease]:
    """Leases of these values."""
    return [Lease(value, value, f"1/{value}", 1, 0.0) for value in values]


def custody(*queues: str, most: int = 10) -> Custody:
    made = Custody(RENEW_AFTER_S)
    made.set_most(most)
    for queue in queues:
        made.watch(queue)
    return made


def delivered(made: Custody) -> list[str]:
    """The values of all that waits to be delivered, which is delivered."""
    found = []
    while (held := made.next_ready()) is not None:
        found.append(held.lease.value)
    return found


def told(made: Custody) -> dict[tuple[str, Ending], list[str]]:
    """The values of what the replicas are to be told, which they are."""
    endings = made.take_endings()
    for items in endings.values():
        made.told(items)
    return {key: [held.lease.value for held in items] for key, items in endings.items()}


def test_room_is_what_is_not_held_and_none_without_a_queue() -> None:
    made = custody(most=3)
    assert made.room(0.0) == 0
    made.watch("a")
    assert made.room(0.0) == 3
    made.took("a", leased("x", "y"), 0.0)
    assert made.room(0.0) == 1
    made.set_most(1)
    assert made.room(0.0) == 0
    made.set_most(0)
    assert made.room(0.0) == HELD_MAX - 2


def test_what_is_delivered_takes_room_until_the_replicas_know_that_it_is_ended() -> None:
    made = custody("a", most=2)
    made.took("a", leased("x"), 0.0)
    held = made.next_ready()
    assert held is not None
    assert made.room(0.0) == 1
    assert made.end(held.tag, Ending.ACK)
    assert made.room(0.0) == 1
    assert told(made) == {("a", Ending.ACK): ["x"]}
    assert made.room(0.0) == 2
    assert not made.end(held.tag, Ending.REJECT), "it is ended once"
    assert not made.has_endings


def test_each_queue_is_the_first_in_its_turn() -> None:
    made = custody("a", "b", "c")
    assert [made.next_queues() for _ in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_what_was_not_delivered_of_a_queue_goes_back_when_it_is_left() -> None:
    made = custody("a", "b")
    made.took("a", leased("x", "y"), 0.0)
    made.took("b", leased("z"), 0.0)
    assert made.next_ready() is not None
    made.unwatch("a")
    assert told(made) == {("a", Ending.RELEASE): ["y"]}
    assert delivered(made) == ["z"]
    assert made.held == 2, "x is with the caller"


def test_what_comes_too_late_goes_back() -> None:
    made = custody("a")
    made.unwatch("a")
    assert made.took("a", leased("x"), 0.0) == 0
    made.watch("a")
    made.is_closed = True
    assert made.took("a", leased("y"), 0.0) == 0
    assert told(made) == {("a", Ending.RELEASE): ["x", "y"]}
    assert made.next_ready() is None


def test_what_could_not_be_told_is_told_before_what_came_since() -> None:
    made = custody("a")
    made.end(made.keep("a", leased("x")[0], 0.0).tag, Ending.ACK)
    taken = made.take_endings()
    made.end(made.keep("a", leased("y")[0], 0.0).tag, Ending.ACK)
    for (queue, ending), items in taken.items():
        made.tell_again(queue, ending, items)
    assert told(made) == {("a", Ending.ACK): ["x", "y"]}


def test_a_lease_is_renewed_when_its_time_has_come_and_no_sooner() -> None:
    made = custody("a", "b")
    made.took("a", leased("x"), 0.0)
    made.took("b", leased("y"), 5.0)
    assert made.to_renew(9.9) == {}
    due = made.to_renew(10.0)
    assert {queue: [held.lease.value for held in items] for queue, items in due.items()} == {"a": ["x"]}
    made.renewed(due["a"], 10.0)
    assert made.to_renew(14.9) == {}
    assert set(made.to_renew(20.0)) == {"a", "b"}


def test_nothing_is_taken_while_a_renewal_is_late() -> None:
    made = custody("a", most=9)
    made.took("a", leased("x"), 0.0)
    assert made.room(19.9) == 8
    assert made.room(20.0) == 0
    made.renewed(made.to_renew(20.0)["a"], 20.0)
    assert made.room(20.0) == 8


def test_a_queue_whose_renewals_are_late_keeps_nothing_from_another() -> None:
    made = custody("a", "b", most=9)
    made.took("a", leased("x"), 0.0)
    assert [made.room(20.0, queue) for queue in ("a", "b", None)] == [0, 8, 8]
    made.unwatch("b")
    assert [made.room(20.0, queue) for queue in ("a", "b", None)] == [0, 0, 0]


def test_nothing_is_taken_while_the_replicas_have_long_not_heard_of_an_ending() -> None:
    made = custody("a", most=9)
    made.end(made.keep("a", leased("x")[0], 0.0).tag, Ending.ACK)
    assert made.room(20.0) == 0
    items = made.take_endings()["a", Ending.ACK]
    assert made.room(20.0) == 0, "they are being told"
    made.told(items)
    assert made.room(20.0) == 9


def test_a_lost_item_is_neither_delivered_nor_renewed() -> None:
    made = custody("a", most=1)
    made.took("a", leased("x"), 0.0)
    made.lost(made.to_renew(10.0)["a"])
    assert made.next_ready() is None
    assert made.to_renew(100.0) == {}
    assert made.room(0.0) == 1


def test_all_that_is_held_can_be_given_back() -> None:
    made = custody("a")
    made.took("a", leased("x", "y"), 0.0)
    made.next_ready()
    made.release_all()
    assert told(made) == {("a", Ending.RELEASE): ["x", "y"]}
    assert made.next_ready() is None
    assert made.held == 0


class Flow(RuleBasedStateMachine):
    """Items flow through: none is lost, none ended twice, and room is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.custody = custody("a", "b", most=5)
        self.taken = 0
        self.with_caller: list[Held] = []
        self.gone = 0

    @rule(queue=st.sampled_from("ab"), share=st.floats(0, 1))
    def take(self, queue: str, share: float) -> None:
        count = round(share * self.custody.room(0.0))
        self.custody.took(queue, leased(*(str(self.taken + n) for n in range(count))), 0.0)
        self.taken += count

    @rule()
    def deliver(self) -> None:
        held = self.custody.next_ready()
        if held is not None:
            self.with_caller.append(held)

    @rule(ending=st.sampled_from(Ending))
    def end(self, ending: Ending) -> None:
        if self.with_caller:
            assert self.custody.end(self.with_caller.pop().tag, ending)

    @rule(queue=st.sampled_from("ab"))
    def leave_and_return(self, queue: str) -> None:
        self.custody.unwatch(queue)
        self.custody.watch(queue)

    @rule(is_heard=st.booleans())
    def tell(self, is_heard: bool) -> None:
        for (queue, ending), items in self.custody.take_endings().items():
            if is_heard:
                self.gone += len(items)
                self.custody.told(items)
            else:
                self.custody.tell_again(queue, ending, items)

    @invariant()
    def holds_no_more_than_it_may(self) -> None:
        assert self.custody.held + self.custody.room(0.0) <= 5
        if not self.custody.has_endings:
            assert self.custody.held + self.custody.room(0.0) == 5

    def teardown(self) -> None:
        self.custody.release_all()
        self.tell(is_heard=True)
        assert self.gone == self.taken


TestFlow = Flow.TestCase


@given(st.lists(st.sampled_from("abc"), max_size=8))
def test_a_queue_is_watched_once_however_often_it_is_asked_for(queues: list[str]) -> None:
    assert sorted(custody(*queues).next_queues()) == sorted(set(queues))
