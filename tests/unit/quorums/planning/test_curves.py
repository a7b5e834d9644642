"""Load and capacity over the share of an operation: the figures of the strategy that is best there."""

import pytest

from quorate.adts.types.file import File
from quorate.quorums.choices.assignment import of_pair
from quorate.quorums.choices.choices import constraints_of
from quorate.quorums.planning.cost import Workload
from quorate.quorums.planning.curves import STEPS, curve
from quorate.quorums.planning.search import Setting
from quorate.quorums.systems.failures import Independent
from quorate.quorums.systems.systems import BadQuorums, choose, majority

FILE = constraints_of(File())
MIX = {"Read/Ok": 3.0, "Write/Ok": 1.0}
ALL = Setting(FILE, tuple("abc"), MIX, Independent(dict.fromkeys("abc", 0.9)), Workload(((1.0, MIX),)))


def test_from_no_reads_to_reads_alone() -> None:
    """Reads of one of three, writes of all: with a share s of reads each replica is in s/3 + (1 - s) of the operations."""
    points = curve(of_pair(FILE, choose(1, "abc"), choose(3, "abc")), ALL, "Read")
    assert [point.share for point in points] == pytest.approx([step / STEPS for step in range(STEPS + 1)])
    for share, load, capacity in points:
        assert load == pytest.approx(share / 3 + 1 - share)
        assert capacity == pytest.approx(1 / load)


def test_where_no_quorum_has_so_many_to_spare_there_is_no_point() -> None:
    """Reads of two of three can spare one, writes of three cannot: only where nobody writes there is a strategy."""
    spared = Setting(**{name: getattr(ALL, name) for name in ALL.__dataclass_fields__} | {"spare": 1})
    (only,) = curve(of_pair(FILE, choose(1, "abc"), choose(3, "abc")), spared, "Read")
    assert tuple(only) == pytest.approx((1.0, 2 / 3, 1.5))


def test_a_mix_of_one_operation_has_no_curve() -> None:
    alone = Setting(FILE, tuple("abc"), {"Read/Ok": 1.0}, ALL.model, ALL.workload)
    with pytest.raises(
        BadQuorums, match="a plot over the share of Read needs a mix of Read and something else"
    ):
        curve(of_pair(FILE, majority("abc")), alone, "Read")
