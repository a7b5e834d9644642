"""The code of data types of one's own, as the cluster file names it. Replicas keep objects without it; to run a call takes it, and to know one that
no honest front end stores."""

import logging
from collections.abc import Mapping
from importlib import import_module

from ...adts.plain_class import BadClass, PlainClass, is_plain
from ...adts.types.catalogue import adt_of
from ...adts.users_code import told
from ...api_specs.messages import Append
from ...api_specs.values import is_deeper

OwnTypes = Mapping[str, PlainClass | str]
"""The types of a cluster, by name; in place of one whose code is not here, why."""

_log = logging.getLogger(__name__)


def load(types: Mapping[str, str]) -> OwnTypes:
    """The types by name; in place of one that cannot be had why, in a sentence, which is logged, too."""
    found = {name: _loaded(code) for name, code in types.items()}
    for name, each in found.items():
        if isinstance(each, str):
            _log.warning("no call of the type %s can be run here: %s", name, each)
    return found


def _loaded(code: str) -> PlainClass | str:
    module, _, name = code.partition(":")
    try:
        member = getattr(import_module(module), name)
        if not is_plain(member):
            return f"{code} is no plain class: one has no `step`, which serial specifications have"
        return PlainClass(member)
    except BadClass as error:
        return f"{code}: {error}"
    except KeyboardInterrupt:  # Ctrl-C: no loop sees to it yet.
        raise
    except BaseException as error:  # noqa: BLE001 - the border to the user's code
        return f"{code} cannot be imported: {told(error)}"


def loaded(types: OwnTypes) -> Mapping[str, PlainClass]:
    """Those whose code is here."""
    return {name: found for name, found in types.items() if isinstance(found, PlainClass)}


def check_calls(types: Mapping[str, PlainClass], depth_max: int, request: Append) -> None:
    """Raises BadClass unless the entries, where they are for an object of one of the types, are calls that a front end stores: of a blind operation,
    with arguments that the class takes, nested no deeper than `depth_max`. One that is not might stop the object for all, or have others' calls fail."""
    if (found := types.get(adt_of(request.object))) is None:
        return
    for place, entry in enumerate(request.entries):
        if isinstance(entry.value, str):
            try:
                found.check_stored(entry.value)
                if is_deeper(entry.value.encode(), depth_max):
                    raise BadClass(
                        f"a call that is stored is nested {depth_max} deep at most: have it decided"
                    )
            except BadClass as error:
                raise BadClass(f"entries[{place}]: {error}") from None
