"""A directory, against a dictionary of Python."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.directory import Directory
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


@given(
    st.lists(
        st.tuples(st.sampled_from(["Put", "Insert", "Update"]), st.sampled_from("jk"), ITEMS)
        | st.tuples(st.sampled_from(["Delete", "Lookup"]), st.sampled_from("jk"))
        | st.just(("Size",))
    )
)
def test_a_directory_says_whether_the_key_was_there(words: Words) -> None:
    plain: dict[str, int] = {}
    for (word, *args), response in responses(Directory(), words):
        was_there = bool(args) and args[0] in plain
        expected = OK
        match word:
            case "Size":
                expected = Response("Ok", (len(plain),))
            case "Insert" if was_there:
                expected = Response("Present")
            case "Put" | "Insert":
                plain[args[0]] = args[1]
            case _ if not was_there:
                expected = Response("Absent")
            case "Update":
                plain[args[0]] = args[1]
            case "Delete":
                del plain[args[0]]
            case "Lookup":
                expected = Response("Ok", (plain[args[0]],))
        assert response == expected
