"""Data types on the command line: one of the catalogue by its name, or one's own as FILE.py:NAME."""

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final, cast

import typer

from ...adts.dependency import DEFAULT, Bound, TooLarge
from ...adts.own import Computed
from ...adts.plain_class import BadClass, PlainClass, is_plain
from ...adts.specification import SerialSpecification, Specification
from ...adts.types.catalogue import known_types
from ...adts.users_code import told
from ..failure import Usage

TypeArgument = Annotated[
    str,
    typer.Argument(
        metavar="TYPE",
        help="A data type, as `quorate quorums types` lists them, or your own class: FILE.py:NAME.",
        show_default=False,
    ),
]
PLAIN_EVENTS_MIN: Final = 3
"""No pair of a type of the catalogue needs longer histories."""
_MEMBERS: Final = ("name", "arguments", "results", "initial", "step")


def type_named(text: str, bound: Bound = DEFAULT) -> Specification:
    """The data type that `text` names. For one's own the dependency relation is computed, within `bound`; for a plain class as
    far as `bound` allows, for its states may be without end.

    Raises Usage when there is none, or when it cannot be searched.
    """
    file, colon, name = text.rpartition(":")
    if colon:
        return computed(text, own_type(Path(file), name), bound)
    if text not in known_types():
        raise Usage(
            f"there is no data type {text!r}: use {', '.join(known_types())}, or FILE.py:NAME for your own"
        )
    return known_types()[text]


def own_type(file: Path, name: str, plain: type[PlainClass] = PlainClass) -> SerialSpecification:
    """What the file calls `name`: a plain class (as a `plain`), a specification, or a class of which one is made without arguments."""
    module = _loaded(file)
    with users_code(f"{file} has no data type {name!r}"):
        found = getattr(module, name)
        if is_plain(found):
            return plain(found)
        serial = found() if isinstance(found, type) else found
    missing = [member for member in _MEMBERS if not hasattr(serial, member)]
    if missing:
        raise Usage(
            f"{file}:{name} lacks {', '.join(missing)}: a data type has {', '.join(_MEMBERS)}, "
            "as docs/reference/types.md shows"
        )
    return serial  # type: ignore[no-any-return] # a file of the user's own; only its members are known


def _loaded(file: Path) -> ModuleType:
    if not file.is_file():
        raise Usage(f"{str(file)!r} is not a file: write FILE.py:NAME for a data type of your own")
    spec = importlib.util.spec_from_file_location(f"quorate_own_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise Usage(f"{file} is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    with users_code(f"{file} cannot be read"):
        spec.loader.exec_module(module)
    return module


def class_of(types: Mapping[str, str], name: str, folder: Path) -> type:
    """The class that a cluster file names for the type, which may stand in the document's folder. Raises Usage."""
    code = types[name]
    module, _, wanted = code.partition(":")
    sys.path.append(str(folder))
    with users_code(f"{code}, the type {name}, cannot be imported"):
        return cast("type", getattr(import_module(module), wanted))


def type_of_cluster(types: Mapping[str, str], name: str, folder: Path) -> Computed:
    """The type of one's own that a cluster file calls so, with its dependency relation. Raises Usage, as `class_of` does."""
    found = class_of(types, name, folder)
    if not is_plain(found):
        raise Usage(f"{types[name]}, the type {name}, is no plain class, which alone is served")
    with users_code(f"{types[name]} is no data type"):
        return computed(types[name], PlainClass(found))


def computed(text: str, serial: SerialSpecification, bound: Bound = DEFAULT) -> Computed:
    """The type that `text` names, with its dependency relation; raises as `type_named` does."""
    if isinstance(serial, PlainClass):
        bound = bound._replace(events_min=min(bound.events_max, PLAIN_EVENTS_MIN))
    with users_code(f"{text} cannot be searched"):
        return Computed(serial, bound)


@contextmanager
def users_code(trouble: str) -> Iterator[None]:
    """The border to a file of the user's own: whatever its code raises is told as `trouble`."""
    try:
        yield
    except (TooLarge, BadClass) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Ctrl-C, while a method ran.
            raise error.__cause__ from None
        raise Usage(str(error)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the border: nothing is known of what that code raises
        raise Usage(f"{trouble}: {told(error)}") from None
