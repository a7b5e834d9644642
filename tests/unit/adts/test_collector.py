"""The garbage collector, kept from looking for a while."""

import gc

from quorate.adts.collector import collector_off


def test_it_is_off_within_and_as_it_was_behind() -> None:
    assert gc.isenabled()
    with collector_off() as was_on:
        assert was_on
        assert not gc.isenabled()
        with collector_off() as was_on_within:
            assert not was_on_within
        assert not gc.isenabled(), "who finds it off leaves it off"
    assert gc.isenabled()
