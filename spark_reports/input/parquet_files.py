"""Looks at Parquet files before anyone reads their rows: each must be whole and have every declared column.

Neither engine would say so by itself. A column that is missing comes out as nulls, so that every answered operation would be
kept aside for want of an event class; and whichever of many files Spark looks at first speaks for all.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from ..model import contract
from ..model.errors import ReportError
from ..model.places import Place

TEXT: Final = "text"
NUMBER: Final = "number"
STATE: Final = "state"
TEXTS: Final = "list of texts"
HOW_TO_WRITE: Final = {
    TEXT: "a string",
    NUMBER: "a double, in seconds for times",
    STATE: "0 or 1",
    TEXTS: "a list of strings",
}
_FORMS: Final = {
    "start_s": NUMBER,
    "latency_s": NUMBER,
    "time_s": NUMBER,
    "up": STATE,
    "answered": TEXTS,
}

OPERATIONS: Final[Mapping[str, str]] = {
    name: _FORMS.get(name, TEXT) for name in (*contract.OPERATION_FIELDS, "event_class")
}
PROBES: Final[Mapping[str, str]] = {name: _FORMS.get(name, TEXT) for name in contract.PROBE_FIELDS}
PROBES_OPTIONAL: Final[Mapping[str, str]] = {"latency_s": NUMBER}
"""Nothing rests on how long a probe took."""


def check(
    place: Place,
    columns: Mapping[str, str],
    optional: Mapping[str, str] | None = None,
    only: Collection[Place] | None = None,
) -> frozenset[str]:
    """See that each file of a folder, or the one file, is whole and has these columns, each of its form; with `only`, each of those.

    Folders named `column=value` on the way to a file give it that column.

    Returns:
        The columns of numbers that hold whole ones.

    Raises:
        ReportError: pyarrow is not installed, a file is no Parquet, lacks a column or has one of another form.
    """
    try:
        from pyarrow import ArrowException, parquet, types  # noqa: PLC0415 - plain runs need no pyarrow
    except ModuleNotFoundError:
        raise ReportError(
            f"{place} holds Parquet, which needs pyarrow; run: pip install 'quorate[reports]'"
        ) from None
    whole: dict[str, tuple[bool, Place]] = {}
    for path in files_in(place) if only is None else sorted(set(files_in(place)).intersection(only)):
        try:
            with path.open("rb") as file:
                schema = parquet.read_schema(file)
        except (ArrowException, OSError) as error:
            raise ReportError(
                f"{path} cannot be read as Parquet ({error}); it was not written to its end: write it anew or take it away"
            ) from error
        given = {part.partition("=")[0] for part in path.relative_to(place).parts[:-1] if "=" in part}
        missing = [name for name in columns if name not in schema.names and name not in given]
        if missing:
            raise ReportError(
                f"{path} has no column {', '.join(missing)}; write it with all of {', '.join(columns)} "
                "(docs/reference/measurements.md), and null where there is no value"
            )
        for name, form in {**columns, **(optional or {})}.items():
            if name not in schema.names:
                continue
            found = schema.field(name).type
            if not _has_form(found, form):
                raise ReportError(
                    f"{path}: column {name!r} is of type {found}; write it as {HOW_TO_WRITE[form]}"
                )
            if form == NUMBER and not types.is_null(found):
                _note(whole, name, path, is_whole=types.is_integer(found))
    return frozenset(name for name, (is_whole, _) in whole.items() if is_whole)


def _note(whole: dict[str, tuple[bool, Place]], name: str, path: Place, *, is_whole: bool) -> None:
    before, first = whole.setdefault(name, (is_whole, path))
    if before != is_whole:
        raise ReportError(
            f"{first} and {path}: column {name!r} holds whole numbers in one and doubles in the other; "
            "write it as a double in both"
        )


def files_in(place: Place) -> Iterator[Place]:
    """The files that both engines read: those whose path has no name that begins with a dot or an underscore."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.rglob("*")):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(place).parts)
        if path.is_file() and not hidden:
            yield path


def _has_form(found: Any, form: str) -> bool:
    from pyarrow import types  # noqa: PLC0415

    if types.is_null(found):
        return True
    if form in (NUMBER, STATE):
        is_number = types.is_floating(found) or types.is_integer(found)
        return bool(is_number or (form == STATE and types.is_boolean(found)))
    if form == TEXTS:
        is_list = types.is_list(found) or types.is_large_list(found)
        return bool(is_list and _has_form(found.value_type, TEXT))
    if types.is_dictionary(found):
        return _has_form(found.value_type, TEXT)
    return bool(types.is_string(found) or types.is_large_string(found))
