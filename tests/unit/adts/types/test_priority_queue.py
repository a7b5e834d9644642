"""A priority queue, against a heap."""

import heapq

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.priority_queue import PriorityQueue
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.sampled_from([("Deq",), ("Peek",)])))
def test_a_priority_queue_gives_the_least(words: Words) -> None:
    plain: list[int] = []
    for (word, *args), response in responses(PriorityQueue(), words):
        if word == "Enq":
            heapq.heappush(plain, args[0])
            assert response == OK
        elif not plain:
            assert response == Response("Empty")
        else:
            assert response == Response("Ok", (heapq.heappop(plain) if word == "Deq" else plain[0],))
