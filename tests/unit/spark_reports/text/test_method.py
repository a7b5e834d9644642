"""What is said of how figures came about."""

from dataclasses import replace

from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.text import method
from tests.unit.spark_reports.made_figures import Made, outages


def test_an_interval_by_outage_is_named_with_its_sources() -> None:
    """`Made` has three outages of each of eight operations."""
    figures = Made().figures()
    said = method.interval(figures)
    assert "than shown" not in said
    assert "An interval by outage counts where there were fewer than 8 outages" in said
    assert "(Garwood 1936)" in said
    assert "(Trivedi 2001)" in said
    assert "rule of three" not in said
    first, second, *others = figures.operations
    spared = replace(first, trace=outages(0, 0.0))
    none = replace(second, by_outage=None)
    said = method.interval(replace(figures, operations=(spared, none, *others)))
    assert "An interval by outage (for 7 of 8 operations)" in said
    assert "Where there was no outage at all (for 1 of 8 operations), the rule of three" in said


def test_where_no_replica_was_down_the_interval_is_not_praised() -> None:
    said = method.interval(Made(failing=False).figures())
    assert "For all 8 operations, only the first can be made: no replica was seen down" in said
    assert "by the rule of three, there is less than one in 80" in said
    assert said.endswith("uncertainty is larger than shown.")


def test_the_name_of_a_choice_is_explained_by_the_recommended_one() -> None:
    figures = Made().figures()
    best = figures.recommendations[0].choice
    rows = tuple(
        replace(row, initial="0", final="2", needed_votes=2)
        if row.choice == best
        else replace(row, initial="9", final="9", needed_votes=9)
        for row in figures.counterfactuals
    )
    said = method.reading(replace(figures, counterfactuals=rows)).replace(NO_BREAK, " ")
    assert "with Enq (0, 2), Enq reads at 0 replicas before it answers and is stored at 2 after" in said
    assert said.endswith("while 2 of them are up.")
    heavy = (replace(figures.replicas[0], votes=3), *figures.replicas[1:])
    weighted = method.reading(replace(figures, counterfactuals=rows, replicas=heavy))
    assert "0 votes" in weighted
    systems = tuple(replace(row, needed_votes=None) for row in rows)
    assert method.reading(replace(figures, counterfactuals=systems)) == ""
