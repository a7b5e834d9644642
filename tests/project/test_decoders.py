"""Where Structs get their decoders: as modules load, before there are threads.

msgspec collects what it knows of a Struct at the first decoder of it, and keeps it with the class before it is complete. So a second
thread whose first decoding comes meanwhile ends the process with a segmentation fault (0.22; seen with clients that connect in
threads of their own).
"""

import ast
from collections.abc import Iterator

from tests.project.test_structure import modules

ROOMS = ("adts", "api_specs", "client_sdk", "gc", "integrations", "quorums", "replica", "timestamps")
"""Whose code runs in threads of applications and replicas. Commands are processes with one thread that decodes."""
HARMLESS = {"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"}


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _kind(node: ast.Call) -> str | None:
    """The type that a call decodes to or converts to; None where it does neither."""
    named = next((each.value for each in node.keywords if each.arg == "type"), None)
    at = {"decode": 99, "convert": 1, "Decoder": 0}.get(_called(node))
    if at is None:
        return None
    found = named or (node.args[at] if len(node.args) > at else None)
    return None if found is None else ast.unparse(found)


def late(text: str) -> Iterator[str]:
    """The types that functions of a module make decoders of, though no decoder was made as it loaded."""
    nodes = list(ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    calls = [(node, kind) for node in nodes if isinstance(node, ast.Call) and (kind := _kind(node))]
    early = {kind for node, kind in calls if id(node) not in inside}
    for node, kind in calls:
        if id(node) in inside and kind not in early and kind.partition("[")[0] not in HARMLESS:
            yield kind


def test_decoders_are_made_as_modules_load() -> None:
    found = {path: list(late(text)) for path, text in modules() if path.partition("/")[0] in ROOMS}
    assert {path: kinds for path, kinds in found.items() if kinds} == {}


def test_one_that_is_made_late_is_found() -> None:
    assert list(late("def f(b):\n    return json.decode(b, type=Thing)")) == ["Thing"]
    assert list(late("def f(b):\n    return convert(b, Thing)")) == ["Thing"]
    assert list(late("def f(b):\n    return Decoder(Thing).decode(b)")) == ["Thing"]
    assert list(late("D = Decoder(Thing)\ndef f(b):\n    return convert(b, Thing)")) == []
    assert list(late("def f(b):\n    return json.decode(b, type=dict[str, int])")) == []
