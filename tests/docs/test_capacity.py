"""The page on capacity says what the calculus and the page on performance say."""

import re
from math import comb

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/how-to/capacity.md").read_text()
PERFORMANCE = (ROOT / "docs/explanation/performance.md").read_text()
COLUMNS = {"3 replicas, 1 front end": "N=3, 1 front end", "5 replicas, 1 front end": "N=5, 1"}
COLUMNS |= {"3 replicas, 16 front ends": "N=3, 16"}
"""Of the table of rates, by their names on the page on performance."""


def table(page: str, title: str) -> dict[str, dict[str, str]]:
    """The rows of the table whose head has that title, by their first cell: the others by their titles."""
    lines = iter(page.splitlines())
    [head] = [line for line in lines if line.startswith("|") and f"| {title} |" in line][:1]
    rest = page.partition(head)[2].splitlines()[2:]
    titles = [each.strip() for each in head.strip("|").split("|")]
    found: dict[str, dict[str, str]] = {}
    for line in rest:
        if not line.startswith("|"):
            return found
        cells = [each.strip() for each in line.strip("|").split("|")]
        found[cells[0]] = dict(zip(titles, cells, strict=True))
    return found


def down(replicas: int, up: float) -> float:
    """How likely no majority is up."""
    return sum(comb(replicas, n) * up**n * (1 - up) ** (replicas - n) for n in range(replicas // 2 + 1))


def test_majorities_are_up_as_often_as_the_page_says() -> None:
    rows = table(PAGE, "99.9 %")
    assert list(rows) == ["1", "3", "5", "7"]
    for number, row in rows.items():
        replicas = int(number)
        assert row["go on while so many are away"] == str((replicas - 1) // 2)
        for up, title in ((0.99, "majorities are up, each replica 99 % of the time"), (0.999, "99.9 %")):
            stated = re.match(r"(above )?([\d.]+) %", row[title])
            assert stated is not None
            percent, digits = 100 * (1 - down(replicas, up)), len(stated[2].partition(".")[2])
            assert percent > float(stated[2]) if stated[1] else f"{percent:.{digits}f}" == stated[2]


def test_times_without_a_majority_are_those_of_the_shares() -> None:
    stated = re.findall(r"\((\d+) (minutes|seconds)(?: of 30 days missing)?\)", PAGE)
    exact = [down(*each) * 30 * 86400 for each in ((3, 0.99), (3, 0.999), (5, 0.99))]
    seconds = [int(number) * (60 if unit == "minutes" else 1) for number, unit in stated]
    assert len(seconds) == len(exact)
    assert all(abs(told / true - 1) < 0.05 for told, true in zip(seconds, exact, strict=True))


def test_rates_are_those_of_the_model() -> None:
    rates = table(PAGE, "3 replicas, 1 front end")
    model = table(PERFORMANCE, "N=3, 1 front end")
    assert rates.keys() == model.keys()
    for work, row in rates.items():
        assert {title: row[title] for title in COLUMNS} == {
            title: model[work][other] for title, other in COLUMNS.items()
        }
