"""The garbage collector, kept from looking for a while."""

from quorate.adts.collector import COLLECTOR, collector_off


def test_it_is_off_within_and_as_it_was_behind() -> None:
    assert COLLECTOR.isenabled()
    with collector_off() as was_on:
        assert was_on
        assert not COLLECTOR.isenabled()
        with collector_off() as was_on_within:
            assert not was_on_within
        assert not COLLECTOR.isenabled(), "who finds it off leaves it off"
    assert COLLECTOR.isenabled()
