"""What it takes to refuse JSON that gives a member twice."""

import pytest

from quorate.api_specs.json_members import NotOneMeaning, members

MEMBERS = 2000


class Name(str):
    """The name of a member, which counts how often one is compared with another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("twice", ["first", "last"])
def test_a_member_that_is_given_twice_is_found_in_one_pass(twice: str) -> None:
    """A body of 8 MB has 800,000 members: to compare each with all others would hold the replica up for an hour."""
    names = ["first", *(f"name-{number}" for number in range(MEMBERS)), "last", twice]
    Name.compared = 0
    with pytest.raises(NotOneMeaning, match=f"the member '{twice}' is given more than once"):
        members([(Name(name), 0) for name in names])
    assert Name.compared < MEMBERS
