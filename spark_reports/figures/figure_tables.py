"""The figures as Parquet tables, one for each list of them, with the columns that `keys.KEYS` documents.

Needs pyarrow, which comes with the extra `reports`; without it the same figures stand in `figures.json`.
"""

import collections.abc
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from ..input.rows import Reject
from ..model.errors import ReportError
from ..model.figures import Figures
from ..model.places import Place

REJECTED_COLUMNS: Final = ("kind", "source", "reason", "line")


def table_names() -> tuple[str, ...]:
    """The names of all files that `write_tables` may write."""
    return tuple(f"{field.name}.parquet" for field in fields(Figures))


def can_write() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def write_tables(figures: Figures, folder: Place) -> None:
    """Write every list of figures as `<name>.parquet`; what stands alone becomes a table of one row.

    Raises:
        ReportError: the folder cannot be written.
    """
    plain = figures.as_dict()
    hints = get_type_hints(Figures)
    for field in fields(Figures):
        value, hint = plain[field.name], hints[field.name]
        if not isinstance(value, list | tuple | dict):
            continue
        row_type = get_args(hint)[0] if get_origin(hint) is tuple else hint
        rows = [value] if isinstance(value, dict) else list(value)
        _write(folder / f"{field.name}.parquet", rows, row_type)


def write_rejected(rejects: Iterable[Reject], folder: Place) -> None:
    """Write the rows kept aside, with the reasons, as Spark does.

    Raises:
        ReportError: the folder cannot be written.
    """
    rows = [{name: getattr(each, name) for name in REJECTED_COLUMNS} for each in rejects]
    _write(folder / "rejected" / "part-0.parquet", rows, Reject)


def _write(path: Place, rows: list[dict[str, Any]], row_type: Any) -> None:
    import pyarrow as pa  # noqa: PLC0415 - optional
    from pyarrow import parquet  # noqa: PLC0415

    schema = pa.schema([(name, _arrow(hint)) for name, hint in get_type_hints(row_type).items()])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            parquet.write_table(pa.Table.from_pylist(rows, schema), file)
    except OSError as error:
        raise ReportError(f"{path} cannot be written ({error}); give another folder") from error


def _arrow(hint: Any) -> Any:
    """The Arrow type of an annotation."""
    import pyarrow as pa  # noqa: PLC0415

    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if hint in plain:
        return plain[hint]
    if get_origin(hint) is UnionType:
        return _arrow(next(each for each in get_args(hint) if each is not NoneType))
    if get_origin(hint) is tuple:
        return pa.list_(_arrow(get_args(hint)[0]))
    if get_origin(hint) is collections.abc.Mapping:
        return pa.map_(pa.string(), pa.string())
    assert is_dataclass(hint) or hasattr(hint, "_fields"), hint
    hints = get_type_hints(hint)
    if hasattr(hint, "_fields"):  # an interval [low, high], as JSON has it
        return pa.list_(pa.float64())
    return pa.struct([(name, _arrow(each)) for name, each in hints.items()])
