"""The code of types of one's own, where a replica finds it and where it does not."""

from pathlib import Path

import pytest

from quorate.adts.plain_class import PlainClass
from quorate.replica.service.own_types import load
from tests.support.own_types import TYPES


@pytest.mark.parametrize("how", ["GeneratorExit", "BaseException", "SystemExit", "asyncio.CancelledError"])
def test_a_module_that_raises_what_ends_other_things_is_told(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_at_once.py").write_text(f"import asyncio\nraise {how}('\\ud800')\n")
    monkeypatch.syspath_prepend(tmp_path)
    name = how.rpartition(".")[2]
    assert load({"cart": "ends_at_once:Cart"}) == {
        "cart": f"ends_at_once:Cart cannot be imported: {name}: \\ud800"
    }


def test_a_type_is_its_class_or_the_reason_why_not(caplog: pytest.LogCaptureFixture) -> None:
    found = load(
        TYPES | {"nobody": "tests.support.own_types:Nobody", "served": "quorate.adts.types.stack:Stack"}
    )
    assert isinstance(found["cart"], PlainClass)
    assert found["lost"] == (
        "tests.support.nowhere:Lost cannot be imported: ModuleNotFoundError: No module named 'tests.support.nowhere'"
    )
    assert "NotThere has no public method" in str(found["broken"])
    assert "AttributeError" in str(found["nobody"])
    assert str(found["served"]).startswith(
        "quorate.adts.types.stack:Stack is no plain class: one has no `step`"
    )
    assert (
        "no call of the type lost can be run here: tests.support.nowhere:Lost cannot be imported"
        in caplog.text
    )
    assert "cart" not in caplog.text.replace("tests.support.own_types", "")
