"""When an item is due and expires, as its id tells."""

import pytest

from quorate.adts.times import NO_TIMES, Times, digest_in, entry_id


@pytest.mark.parametrize("digest", ["", "d1"])
@pytest.mark.parametrize("times", [NO_TIMES, Times(5, 0), Times(0, 7), Times(5, 7)])
def test_an_id_tells_what_it_was_made_of(digest: str, times: Times) -> None:
    made = entry_id("stamp", digest, times)
    assert (Times.of(made), digest_in(made)) == (times, digest)


def test_an_item_without_times_and_key_has_its_stamp_as_id() -> None:
    assert entry_id("stamp", "", NO_TIMES) == "stamp"


@pytest.mark.parametrize("text", ["stamp/d/5", "stamp/d/5-x", "stamp/d/5-123456789012345678", "5-7"])
def test_what_tells_no_times_has_none(text: str) -> None:
    assert Times.of(text) == NO_TIMES
