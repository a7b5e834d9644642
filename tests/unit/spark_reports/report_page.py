"""docs/reference/figures.md, made from the code: `python -m tests.unit.spark_reports.report_page > docs/reference/figures.md`."""

from itertools import groupby

from quorate.spark_reports.figures.keys import KEYS
from quorate.spark_reports.input import probes
from quorate.spark_reports.model import contract

REASONS = (
    contract.MALFORMED_JSON,
    contract.MISSING_FIELD,
    contract.UNKNOWN_OUTCOME,
    contract.UNKNOWN_CHOICE,
    contract.OTHER_ADT,
    contract.UNKNOWN_OBJECT,
    contract.OTHER_CHOICE,
    contract.UNKNOWN_FRONT_END,
    contract.UNKNOWN_OPERATION,
    contract.CLASS_WITHOUT_OK,
    contract.CLASS_MISSING,
    contract.UNKNOWN_CLASS,
    contract.BAD_START,
    contract.BAD_LATENCY,
    contract.UNKNOWN_ANSWER,
    contract.OUTSIDE_WINDOW,
    contract.DUPLICATE,
    contract.MALFORMED_CSV,
    contract.UNKNOWN_REPLICA,
    contract.BAD_TIME,
    contract.BAD_UP,
    contract.ENDS_BEFORE_START,
    contract.SAME_INTERVAL,
    contract.CONTRADICTS,
    probes.CONTRADICTS,
)

INTRODUCTION = """# Figures of a report

Made from the code by `tests/unit/spark_reports/report_page.py`; a test compares the two. [Reports](../how-to/report.md) shows the
command, and [how figures are computed](../explanation/report-figures.md) says what is counted.

## Reasons to keep a row aside

They are tested in this order:

"""
FIGURES = """
## figures.json

`x[].y` is the column `y` of the table `x`, in `tables/x.parquet` too; a [notebook](../how-to/notebook.md) reads it as frames.
"""


def rendered() -> str:
    """The page."""
    reasons = [reason + "…" if reason.endswith(" ") else reason for reason in REASONS]
    parts = [INTRODUCTION, *[f"- {reason}\n" for reason in reasons], FIGURES]
    for table, keys in groupby(KEYS, key=_table):
        parts.append(f"\n### {table}\n\n| key | meaning |\n| --- | --- |\n")
        parts += [f"| `{key}` | {KEYS[key].replace('|', chr(92) + '|')} |\n" for key in keys]
    return "".join(parts)


def _table(key: str) -> str:
    head = key.partition(".")[0].removesuffix("[]")
    return head if "." in key else "the document"


if __name__ == "__main__":
    print(rendered(), end="")
