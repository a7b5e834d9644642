"""What pages that explain say of the code is so: its names can be imported, and its bounds are those of the code."""

import re
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec
import pytest

from quorate.api_specs.limits import DEFAULTS, LEASES_MAX
from tests.docs.pages import ROOT, prose

PAGE = "docs/explanation/from-the-paper.md"
ROOMS = "adts|api_specs|cli|client_sdk|gc|integrations|measurement|quorums|replica|simulation|spark_reports|timestamps"
NAME = re.compile(rf"`((?:{ROOMS})(?:\.\w+)+)`")


def resolve(name: str) -> object:
    """What a dotted name stands for, `quorate.` left out: a module, a thing in it, or a member of that. Raises LookupError."""
    words = f"quorate.{name}".split(".")
    found: object = import_module(".".join(words[:2]))
    for place, word in enumerate(words[2:], 2):
        try:
            found = (
                import_module(".".join(words[: place + 1]))
                if isinstance(found, ModuleType)
                else getattr(found, word)
            )
        except ModuleNotFoundError:
            try:
                found = getattr(found, word)
            except AttributeError:
                raise LookupError(f"{name}: {'.'.join(words[:place])} has no {word}") from None
        except AttributeError:
            raise LookupError(f"{name}: {'.'.join(words[:place])} has no {word}") from None
    return found


def test_every_name_of_the_page_is_there() -> None:
    named = [
        (number, name) for number, line in prose((ROOT / PAGE).read_text()) for name in NAME.findall(line)
    ]
    assert len(named) > 30
    missing = []
    for number, name in named:
        try:
            resolve(name)
        except LookupError as error:
            missing.append(f"{PAGE}:{number}: {error}")
    assert missing == []


@pytest.mark.parametrize(
    "name", ["replica.nothing", "adts.types.queue.Stack", "adts.log.Summary.nothing", "nowhere.at_all"]
)
def test_a_name_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises((LookupError, ModuleNotFoundError)):
        resolve(name)


def test_fields_count_as_members() -> None:
    assert isinstance(resolve("replica.protocol.log"), ModuleType)
    state: Any = resolve("replica.protocol.log.ObjectState")
    assert "fence" in {field.name for field in msgspec.structs.fields(state)}
    resolve("replica.protocol.log.ObjectState.fence")


def test_the_bounds_beside_those_of_other_systems_are_ours() -> None:
    page = (ROOT / "docs/explanation/compared.md").read_text()
    ours = {
        row.split("|")[1].strip(): row.split("|")[2].strip() for row in page.splitlines() if row[:2] == "| "
    }
    assert ours["leases (in flight)"] == f"{LEASES_MAX:,} for each queue"
    assert ours["largest item"] == f"{DEFAULTS.value_bytes_max >> 20} MiB"
    assert ours["a repeat is done once"] == f"for {DEFAULTS.retry_window_s:g} s, by a key"
    assert f"More than {LEASES_MAX:,} items in flight" in page
