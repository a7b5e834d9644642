"""The tables by which tests are spread over workers name what there is, and are those that `make test` goes by."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import pytest_xdist_make_scheduler
from tests.scheduling import APART, GROUPS, SECONDS, seconds_of, unit_of

ROOT = Path(__file__).parents[2]
GROUPED = [path for paths in GROUPS.values() for path in paths]


def test_every_file_of_the_tables_is_there_and_has_one_place() -> None:
    assert [path for path in {*GROUPED, *APART, *SECONDS} if not (ROOT / path).exists()] == []
    assert len(set(GROUPED)) == len(GROUPED)
    assert not APART & set(GROUPED)


def test_all_that_share_the_session_of_spark_run_in_one_worker() -> None:
    sharing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r'\bspark: "?SparkSession', path.read_text())
    }
    assert sharing
    assert sharing <= set(GROUPS["spark"])


def test_a_test_goes_with_its_group_or_its_file_or_by_itself() -> None:
    group, paths = next(iter(GROUPS.items()))
    assert {unit_of(f"{path}::test_{n}[a::b]") for path in paths for n in range(2)} == {group}
    assert unit_of("tests/a/test_b.py::TestC::test_d[e]") == "tests/a/test_b.py"
    alone = f"{min(APART)}::test_a[docs/x.md]"
    assert unit_of(alone) == alone


def test_what_takes_long_comes_first_and_a_group_takes_what_its_files_do() -> None:
    for paths in GROUPS.values():
        assert {seconds_of(f"{path}::test") for path in paths} == {
            sum(SECONDS.get(each, 0) for each in paths)
        }
    path = max(SECONDS.keys() - set(GROUPED), key=lambda each: SECONDS[each])
    assert (
        seconds_of(f"{path}::test_a")
        == SECONDS[path]
        > seconds_of("tests/project/test_scheduling.py::test_a")
        == 0
    )


class Asked:
    """What the hook looks at of a configuration."""

    def __init__(self, dist: str) -> None:
        self.option = SimpleNamespace(dist=dist, tx=["2*popen"], loadscopereorder=True)

    def getoption(self, name: str) -> object:
        return getattr(self.option, name)

    getvalue = getoption


def test_workers_go_by_the_tables_where_make_test_starts_them() -> None:
    (words,) = re.findall(r"pytest -n \S+ --dist (\w+)", (ROOT / "Makefile").read_text())
    asked: Any = Asked(words)
    made: Any = pytest_xdist_make_scheduler(asked, None)
    nodeid = f"{GROUPED[0]}::test_a"
    assert made._split_scope(nodeid) == unit_of(nodeid)
    assert not asked.option.loadscopereorder, "the order is that of the collection"
    other: Any = Asked("load")
    assert pytest_xdist_make_scheduler(other, None) is None
