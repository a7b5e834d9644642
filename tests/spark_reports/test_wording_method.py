"""What is said of how figures came about."""

from dataclasses import replace

from quorate.spark_reports import wording_method
from tests.spark_reports.made_figures import Made, outages


def test_an_interval_over_few_outages_is_not_praised() -> None:
    """`Made` has three outages of each operation."""
    figures = Made().figures()
    assert "than shown" not in wording_method.interval(figures)
    first, *others = figures.operations
    few = replace(figures, operations=(replace(first, trace=outages(2, 9.0)), *others))
    assert "fewer than 3, as for 1 of 8 operations here, the true uncertainty is larger than shown" in (
        wording_method.interval(few)
    )
    assert wording_method.interval(Made(failing=False).figures()).endswith(
        "uncertainty is larger than shown."
    )
