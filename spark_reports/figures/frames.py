"""The figures of a report as data frames: pandas' for a notebook, or Spark's.

Owns how `tables` of a report's folder are read back. Which tables and columns there are, `docs/reference/figures.md` says, made from `keys.KEYS`; they
keep their meaning as long as the layout (`FORMAT`) does.
"""

from pathlib import Path
from typing import TYPE_CHECKING, overload

from ..model.errors import ReportError
from ..model.figures import check_layout

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession


@overload
def load(folder: Path | str, spark: None = None) -> "dict[str, pandas.DataFrame]": ...
@overload
def load(folder: Path | str, spark: "SparkSession") -> "dict[str, DataFrame]": ...
def load(
    folder: Path | str, spark: "SparkSession | None" = None
) -> "dict[str, pandas.DataFrame] | dict[str, DataFrame]":
    """Every table of a report, by its name, as a pandas data frame; as Spark's own, in the session `spark`, where one is given.

    `folder` is what `quorate report --out` wrote. A column that holds an interval has lists of two numbers, its least and its greatest.

        >>> frames = load("out/report")  # doctest: +SKIP
        >>> frames["operations"][["adt", "operation", "measured"]]  # doctest: +SKIP

    Raises:
        ReportError: no report lies there, it has no tables, or it is of another release.
    """
    tables = _tables(Path(folder))
    if spark is not None:
        return {path.stem: spark.read.parquet(path.absolute().as_uri()) for path in tables}
    from pyarrow import parquet  # noqa: PLC0415 - optional, as pandas is

    return {path.stem: parquet.read_table(path).to_pandas() for path in tables}


def _tables(folder: Path) -> list[Path]:
    figures = folder / "figures.json"
    try:
        check_layout(figures.read_bytes())
    except OSError as error:
        raise ReportError(
            f"{folder} holds no report ({error}): name the folder that quorate report --out wrote"
        ) from error
    except ReportError as error:
        raise ReportError(f"{figures} {error}") from None
    tables = sorted((folder / "tables").glob("*.parquet"))
    if not tables:
        raise ReportError(
            f"{folder} has no tables: make the report where pyarrow is installed (pip install 'quorate[reports]')"
        )
    return tables
