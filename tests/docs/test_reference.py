"""The reference says what the docstrings and the OpenAPI document say."""

import ast
import re
from functools import cached_property
from typing import get_args

import pytest

from quorate import client_sdk
from quorate.adts import library
from quorate.api_specs import messages
from tests.docs import http_page, library_page, sdk_page
from tests.docs.pages import ROOT

MAKERS = {
    "docs/reference/sdk.md": sdk_page,
    "docs/reference/http.md": http_page,
    "docs/reference/library.md": library_page,
}


@pytest.mark.parametrize("page", MAKERS)
def test_page_is_up_to_date(page: str) -> None:
    command = f"python -m {MAKERS[page].__name__} > {page}"
    assert (ROOT / page).read_text() == MAKERS[page].rendered(), f"write it with: {command}"


def test_every_public_name_has_its_place_and_a_docstring() -> None:
    placed = [name for names in sdk_page.SECTIONS.values() for name in names]
    assert sorted(placed) == sorted(client_sdk.__all__), "give it a section in tests/docs/sdk_page.py"
    for name in placed:
        node = sdk_page.definition(sdk_page.home_of(name), name)
        assert sdk_page.described(node), name
        if isinstance(node, ast.ClassDef):
            assert [each.name for each in sdk_page.members(node) if not sdk_page.described(each)] == [], name


def test_what_is_no_method_is_not_told_as_one() -> None:
    page = sdk_page.rendered()
    for name in client_sdk.__all__:
        given = getattr(client_sdk, name)
        for each in vars(given) if isinstance(given, type) else ():
            if isinstance(vars(given)[each], property | cached_property) and not each.startswith("_"):
                assert f"\n- `{each}`\n" in page, f"{name}.{each}"
    assert "- `hash()" not in page


def test_every_type_that_bundled_is_described_with_its_operations() -> None:
    page = library_page.rendered()
    for name in library.__all__:
        node = sdk_page.definition(
            f"{getattr(library, name).__module__.removeprefix('quorate.').replace('.', '/')}.py", name
        )
        assert sdk_page.described(node), name
        assert isinstance(node, ast.ClassDef)
        assert [each.name for each in sdk_page.members(node) if not sdk_page.described(each)] == [], name
        assert name in page


def test_every_operation_of_applications_is_on_the_page() -> None:
    page = http_page.rendered()
    told = [operation for item in http_page.DOCUMENT["paths"].values() for operation in item.values()]
    wanted = [each["operationId"] for each in told]
    assert wanted
    assert [name for name in wanted if f"\n### {name}\n" not in page] == []


def test_shapes_are_told_in_few_words() -> None:
    assert http_page.shape({"type": "array", "items": {"type": "string"}}) == "[string]"
    thing = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
    assert http_page.shape(thing) == "{a, b?}"
    assert http_page.shape({"anyOf": [thing, {"type": "null"}]}) == "{a, b?} or null"
    assert http_page.shape({}) == "any JSON"


def told_messages() -> dict[str, set[str]]:
    """The fields of each request and reply, as the page of messages has them."""
    page = (ROOT / "docs/reference/messages.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows}


def test_every_message_is_told_with_all_its_fields() -> None:
    structs = (*get_args(messages.Request), *get_args(messages.Reply))
    assert told_messages() == {
        str(each.__struct_config__.tag): set(each.__struct_encode_fields__) for each in structs
    }
