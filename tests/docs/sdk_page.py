"""docs/reference/sdk.md, made from the docstrings of the SDK: `python -m tests.docs.sdk_page > docs/reference/sdk.md`.

Read from the text of the modules, not from the running program, so that signatures stand as they were written.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quorate import client_sdk
from tests.docs.pages import ROOT

SECTIONS: Final = {
    "Connecting": ["connect", "connect_async", "Client", "AsyncClient", "ClientTls", "ClusterDocument"],
    "Objects": ["Queue", "Register", "Dictionary", "Page"],
    "Objects, with asyncio": ["AsyncQueue", "AsyncRegister", "AsyncDictionary"],
    "Leases": ["DeadLetter", "Delivery", "Lease", "LeaseCounts"],
    "Errors": [
        "QuorateError",
        "Unavailable",
        "OutcomeUnknown",
        "RefusedByReplicas",
        "LimitReached",
        "BadInput",
        "BadCluster",
        "Closed",
        "LeaseLost",
    ],
    "What a client has counted and done": ["FrontEndCounts", "OperationKind", "Distribution", "History"],
}
"""The public names of `quorate.client_sdk`; one that has no place here yet stands at the end of the page."""

STANDARD: Final = {
    "client_sdk/adapters/standard_mapping.py": ["Mapping"],
    "client_sdk/adapters/standard_queue.py": ["Queue", "AsyncQueue"],
}

INTRODUCTION: Final = """# The Python SDK

Made from the docstrings by `tests/docs/sdk_page.py`; a test holds the two together. All names of the first sections come from
`quorate.client_sdk`. Values are what JSON can say: None, bool, int, float, str, list, dict.

Options that many operations take:

- `deadline_s`: seconds that the operation may take; left out, the client's (`connect(…, deadline_s=5)`).
- `idempotency_key`: a repeat under the same key, with the same arguments and within the retry window, takes effect once.

"""

Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def home_of(name: str) -> str:
    """The path of the module that defines a public name of the SDK."""
    found = inspect.getsourcefile(getattr(client_sdk, name))
    assert found is not None
    return str(Path(found).resolve().relative_to(ROOT.resolve()))


def definition(path: str, name: str) -> Def:
    """Its definition at the top of the module."""
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, Def) and node.name == name:
            return node
    raise LookupError(f"{path} defines no {name}")


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """How it is called: `name(arguments) -> result`, self left out."""
    arguments = function.args
    if arguments.args and arguments.args[0].arg == "self":
        arguments.args = arguments.args[1:]
    result = "" if function.returns is None else ast.unparse(function.returns).strip("'")
    prefix = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{prefix}{name}({ast.unparse(arguments)})" + (
        f" -> {result}" if result not in ("", "None") else ""
    )


def members(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The public methods and properties, in their order; each once, also where type checkers are told more of it."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
            if "overload" not in map(ast.unparse, each.decorator_list):
                yield each
        elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            made, method = ast.unparse(each.value.func), ast.unparse(each.value.args[0])
            if made in ("_blocking", "_looping"):
                yield blocking(method)


def blocking(method: str) -> ast.FunctionDef:
    """The method of a blocking handle that is made of an asyncio one, as `AsyncQueue.peek`."""
    kind, _, name = method.partition(".")
    node = definition(home_of(kind), kind)
    assert isinstance(node, ast.ClassDef)
    [found] = [each for each in members(node) if each.name == name]
    returns = found.returns
    if isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "AsyncGenerator":
        assert isinstance(returns.slice, ast.Tuple)
        returns = ast.parse(f"Generator[{ast.unparse(returns.slice.elts[0])}, None, None]", mode="eval").body
    return ast.FunctionDef(name, found.args, found.body, [], returns)


def described(node: Def) -> str:
    """The docstring, as a paragraph of the page."""
    return (ast.get_docstring(node) or "").strip()


def entry(path: str, name: str) -> str:
    """A name of the SDK with all that it offers."""
    node = definition(path, name)
    if not isinstance(node, ast.ClassDef):
        return f"### {name}\n\n`{signature(node, name)}`\n\n{described(node)}\n\n"
    names = [ast.unparse(base) for base in node.bases]
    bases = ", ".join(each for each in names if each not in ("Struct", "NamedTuple") and each[0] != "_")
    text = f"### {name}\n\n" + (f"A kind of `{bases}`. " if bases else "") + f"{described(node)}\n\n"
    for each in members(node):
        called = (
            each.name
            if any(ast.unparse(d) in ("property", "cached_property") for d in each.decorator_list)
            else signature(each, each.name)
        )
        inside = "\n".join(f"  {line}".rstrip() for line in described(each).splitlines())
        text += f"- `{called}`\n\n{inside}\n\n"
    return text


def rendered() -> str:
    """The whole page."""
    placed = {name for names in SECTIONS.values() for name in names}
    rest = [name for name in client_sdk.__all__ if name not in placed]
    page = INTRODUCTION
    for title, names in {**SECTIONS, **({"More": rest} if rest else {})}.items():
        page += f"## {title}\n\n" + "".join(entry(home_of(name), name) for name in names)
    for path, names in STANDARD.items():
        page += f"## {path.replace('/', '.').removesuffix('.py')}\n\n"
        page += "".join(entry(path, name) for name in names)
    return page.rstrip() + "\n"


if __name__ == "__main__":
    print(rendered(), end="")
