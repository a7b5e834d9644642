"""A lock: one holder at a time, who loses it with time, and a number that never repeats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.library import Held, Lock, NoOwner, NotHeld


def test_it_is_held_until_it_is_given_back_or_its_time_is_over() -> None:
    lock = Lock()
    assert lock.acquire("ann", 0.0, 5.0) == 1
    with pytest.raises(Held):
        lock.acquire("ben", 4.9, 5.0)
    assert lock.acquire("ann", 4.0, 5.0) == 1, "its holder keeps it longer"
    assert lock.acquire("ben", 9.0, 5.0) == 2, "whoever died loses it"
    with pytest.raises(NotHeld):
        lock.release(1)
    assert lock.holder() == {"owner": "ben", "until_s": 14.0, "number": 2}
    lock.release(2)
    with pytest.raises(NotHeld):
        lock.release(2)
    assert lock.acquire("ann", 9.5, 5.0) == 3


def test_nobody_without_a_name_is_given_it() -> None:
    lock = Lock()
    with pytest.raises(NoOwner):
        lock.acquire("", 0.0, 5.0)
    assert lock.acquire("ann", 1.0, 5.0) == 1


def test_whoever_was_late_gets_a_new_number() -> None:
    lock = Lock()
    assert [lock.acquire("ann", at_s, 1.0) for at_s in (0.0, 0.5, 1.5)] == [1, 1, 2]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["ann", "ben"]), st.floats(-9, 9), st.floats(-1, 9)), st.integers(0, 4)
        ),
        max_size=12,
    )
)
def test_no_two_owners_ever_get_one_number(calls: list[tuple[str, float, float] | int]) -> None:
    """However wrong the clocks are."""
    lock, owners, highest = Lock(), dict[int, str](), 0
    for call in calls:
        try:
            if isinstance(call, int):
                lock.release(call)
                continue
            number = lock.acquire(*call)
        except (Held, NotHeld):
            continue
        assert owners.setdefault(number, call[0]) == call[0]
        assert number >= highest
        highest = number
