"""docs/reference/http.md, made from the OpenAPI document: `python -m tests.docs.http_page > docs/reference/http.md`."""

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.docs.pages import ROOT

DOCUMENT: Final[dict[str, Any]] = json.loads((ROOT / "api_specs" / "openapi.json").read_text())
INTRODUCTION: Final = """# The HTTP API

Made from `api_specs/openapi.json` by `tests/docs/http_page.py`; a test holds the two together. Each replica serves the whole
document at `/v1/openapi.json`, with every schema and example, and pages to try it at `/docs`; [clients](../how-to/clients.md) makes a
typed client of it. The replica protocol, which front ends and replicas speak, has a document of its own, at `/replica/v1/openapi.json`.

Where a token is asked for, send `Authorization: Bearer TOKEN`; `scope` says which. Errors are problem documents (RFC 9457) with
a member `definite`: whether it is certain that nothing happened. An answer with the header `Quorate-Consistency: eventual` may
be old ([why](../how-to/eventual-consistency.md)).

"""
METHODS: Final = ("get", "put", "post", "delete")


def operations(tag: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The operations of a tag: method and path, and what is said of them."""
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item and tag in item[method]["tags"]:
                yield f"{method.upper()} {path}", item[method]


def shape(schema: dict[str, Any]) -> str:
    """A schema in a few words: the fields of an object with their kinds, or the kind."""
    schema = resolved(schema)
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(dict.fromkeys(shape(each) for each in choices))
    if "properties" in schema:
        needed = schema.get("required", [])
        return (
            "{" + ", ".join(f"{name}{'' if name in needed else '?'}" for name in schema["properties"]) + "}"
        )
    if schema.get("type") == "array":
        return f"[{shape(schema['items'])}]"
    return str(schema.get("type", "any JSON"))


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for."""
    while "$ref" in node:
        place: Any = DOCUMENT
        for word in node["$ref"].removeprefix("#/").split("/"):
            place = place[word]
        node = place
    return node


def content(message: dict[str, Any]) -> str:
    """What a body or an answer holds, by its media types."""
    shapes = {kind: shape(each.get("schema", {})) for kind, each in message.get("content", {}).items()}
    return "; ".join(
        f"`{told}` ({kind})" for kind, told in shapes.items() if kind != "application/problem+json"
    )


def parameters(operation: dict[str, Any]) -> Iterator[str]:
    """A row for each parameter."""
    for each in map(resolved, operation.get("parameters", [])):
        said = each.get("description", "").replace("|", "\\|")
        yield f"| `{each['name']}` | {each['in']} | {'yes' if each.get('required') else ''} | {said} |\n"


def answers(operation: dict[str, Any]) -> Iterator[str]:
    """A row for each status that is not for all operations alike."""
    for status, answer in operation["responses"].items():
        found = resolved(answer)
        said = found["description"].rstrip(".").replace("|", "\\|").replace("\n", " ")
        yield f"| {status} | {said}{': ' if content(found) else ''}{content(found)} |\n"


def entry(called: str, operation: dict[str, Any]) -> str:
    """An operation."""
    scopes = sorted(
        {scope for need in operation.get("security", []) for words in need.values() for scope in words}
    )
    text = f"### {operation['operationId']}\n\n`{called}`{f', scope {scopes[0]}' if scopes else ''}\n\n"
    text += f"{operation['summary']}. {operation.get('description', '')}".strip() + "\n\n"
    if rows := "".join(parameters(operation)):
        text += f"| parameter | in | needed | |\n| --- | --- | --- | --- |\n{rows}\n"
    if body := operation.get("requestBody"):
        text += f"Body: {content(resolved(body))}\n\n"
    return text + "| status | answer |\n| --- | --- |\n" + "".join(answers(operation)) + "\n"


def rendered() -> str:
    """The whole page."""
    page = INTRODUCTION
    for tag in DOCUMENT["tags"]:
        page += f"## {tag['name'].capitalize()}\n\n{tag['description']}\n\n"
        page += "".join(entry(called, operation) for called, operation in operations(tag["name"]))
    return page.rstrip() + "\n"


if __name__ == "__main__":
    print(rendered(), end="")
