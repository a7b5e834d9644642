"""The pages about reports say what the code does."""

from pathlib import Path

from quorate.spark_reports.report import PYTHON_ROWS_MAX
from tests.unit.spark_reports.report_page import rendered

DOCS = Path(__file__).parents[3] / "docs"


def test_the_reference_is_current() -> None:
    assert (DOCS / "reference" / "figures.md").read_text(encoding="utf-8") == rendered(), (
        "write it with: python -m tests.unit.spark_reports.report_page > docs/reference/figures.md"
    )


def test_the_bound_of_plain_python_is_the_one_named() -> None:
    assert f"up to {PYTHON_ROWS_MAX:,} rows" in (DOCS / "how-to" / "report.md").read_text(encoding="utf-8")
