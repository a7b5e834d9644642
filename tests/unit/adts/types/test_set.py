"""A set, against one of Python."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.set import Set
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


@given(st.lists(st.tuples(st.sampled_from(["Insert", "Remove", "Member"]), ITEMS) | st.just(("Size",))))
def test_a_set_does_what_a_set_does(words: Words) -> None:
    plain: set[int] = set()
    for (word, *args), response in responses(Set(), words):
        match word:
            case "Insert":
                plain.add(args[0])
            case "Remove":
                plain.discard(args[0])
            case "Member":
                assert response == Response("True" if args[0] in plain else "False")
                continue
        assert response == (Response("Ok", (len(plain),)) if word == "Size" else OK)
