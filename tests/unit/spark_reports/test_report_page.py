"""The page about reports says what the code does."""

from pathlib import Path

from quorate.spark_reports.report import PYTHON_BYTES_MAX
from tests.unit.spark_reports.report_page import INTRODUCTION, rendered

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "report.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered(), (
        "write it with: python -m tests.unit.spark_reports.report_page > docs/how-to/report.md"
    )


def test_the_bound_of_plain_python_is_the_one_named() -> None:
    assert f"({PYTHON_BYTES_MAX >> 20} MiB)" in INTRODUCTION
