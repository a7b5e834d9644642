"""The OpenAPI documents of the HTTP API and of the replica protocol: what the framework makes of the endpoints, and what it cannot know.

Owns how rows of `quorate.replica.openapi.table`, problems and messages become parts of a document, and that generators of
clients understand it: where two forms say the same, the one that more of them read is taken.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from msgspec import Struct
from starlette.routing import BaseRoute

from ...api_specs.cluster import ClusterDocument, ReplicaInfo
from ...api_specs.problems import KINDS, LIMITS, MEDIA_TYPE, Problem, as_json, problem
from ..access.authorization import OPEN_PREFIX, is_public, scope_needed
from ..api import protocol_api
from ..http.routers import OWN_TAG, PROTOCOL_TAG
from .table import INTRODUCTION, OF_OWN_TYPES, OPERATIONS, PROTOCOL_INTRODUCTION, REASONS, TAGS

_SCHEMAS: Final = "#/components/schemas/{name}"
INT32_MAX: Final = 2**31 - 1
_MAY_ASK_TO_WAIT: Final = frozenset({"too-many-requests", "overloaded", "starting", *LIMITS})


_SECURITY_SCHEMES: Final = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token with the scope that the operation names: read, write (which includes read), admin, or "
        "replica (which includes write). A replica on a loopback address may be served without tokens. Where a replica is "
        "served with `--tls-client-ca`, a certificate is asked for besides; generators do not know its type, `mutualTLS`.",
    },
}


class ClusterInfo(Struct, frozen=True):
    """The cluster file that a replica holds, and its hash."""

    hash: str
    document: ClusterDocument


_CLUSTER: Final = ClusterInfo(
    "3f8a0c52b1d94e67",
    ClusterDocument("quorate", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:800{n}") for n in (1, 2, 3))),
)


def api_document(app: FastAPI, *, with_own_types: bool = True) -> dict[str, Any]:
    """The document of the HTTP API of `app`; without types of one's own it says nothing of this cluster."""
    left_out = {PROTOCOL_TAG} if with_own_types else {PROTOCOL_TAG, OWN_TAG}
    routes = [route for route in app.routes if left_out.isdisjoint(_tags(route))]
    document = _begun(app, "Replicated queues, registers and dictionaries", INTRODUCTION, routes)
    return _completed(document, (Problem, ClusterInfo))


def protocol_document(app: FastAPI) -> dict[str, Any]:
    """The document of the replica protocol of `app`."""
    routes = [route for route in app.routes if PROTOCOL_TAG in _tags(route)]
    document = _begun(app, "How front ends and replicas talk to each other", PROTOCOL_INTRODUCTION, routes)
    protocol_api.describe(document)
    return _completed(document, (Problem, *protocol_api.MESSAGES))


def _begun(app: FastAPI, summary: str, description: str, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """What the framework makes of these routes."""
    told = {tag for route in routes for tag in _tags(route)}
    return get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        summary=summary,
        description=description,
        routes=routes,
        separate_input_output_schemas=False,  # A TypedDict that holds its own kind would else be two.
        tags=[{"name": name, "description": text} for name, text in TAGS.items() if name in told],
        servers=[{"url": "/", "description": "The replica that this document comes from; all are equal"}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )


def _completed(document: dict[str, Any], types: Sequence[type]) -> dict[str, Any]:
    """Add what the framework does not know: schemas of these types, what the table tells, and who may ask."""
    components = document["components"]
    _add_schemas(_schemas_of(types), document)
    components["responses"] = {}
    components["securitySchemes"] = _SECURITY_SCHEMES
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _tell(operation, document)
            operation["security"] = _security(method.upper(), path)
    _simplify(document)
    return document


def _tags(route: BaseRoute) -> Sequence[str]:
    return getattr(route, "tags", ())


def operations_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All operations of an OpenAPI document."""
    for item in document["paths"].values():
        yield from item.values()


def _security(method: str, path: str) -> list[dict[str, list[str]]]:
    """Who may call it: as the gate goes by, so that both agree."""
    if path.startswith(OPEN_PREFIX) or is_public(method, path):
        return []
    return [{"token": [scope_needed(method, path)]}, {}]


def _schemas_of(types: Sequence[type]) -> dict[str, Any]:
    return msgspec.json.schema_components(types, ref_template=_SCHEMAS)[1]


def _add_schemas(ours: Mapping[str, Any], document: dict[str, Any]) -> None:
    """What has one of these names already, as a type of one's own may have given it, gets another one."""
    schemas = document["components"]["schemas"]
    for name in schemas.keys() & ours.keys():
        _rename(name, f"{name}Value", document)
    schemas.update(ours)


def _rename(schema: str, other: str, document: dict[str, Any]) -> None:
    """Give a schema another name, wherever it is referred to."""
    schemas = document["components"]["schemas"]
    schemas[other] = schemas.pop(schema)
    for part in _parts(document):
        if part.get("$ref") == _SCHEMAS.format(name=schema):
            part["$ref"] = _SCHEMAS.format(name=other)


def _tell(operation: dict[str, Any], document: dict[str, Any]) -> None:
    """Put what the table tells into an operation; its errors go into the responses that all operations share."""
    told = OF_OWN_TYPES if OWN_TAG in operation["tags"] else OPERATIONS.get(operation["operationId"])
    assert told is not None, f"give {operation['operationId']} a row in quorate.replica.openapi.table"
    operation["summary"] = told.summary or operation["summary"]
    (status,) = operation["responses"].keys() - {"default"}
    answer = operation["responses"][status]
    answer["description"] = told.answer
    if operation["operationId"] == "getCluster":
        schema = {"$ref": _SCHEMAS.format(name="ClusterInfo")}
        answer["content"] = {protocol_api.JSON: {"schema": schema, "example": msgspec.to_builtins(_CLUSTER)}}
    if told.links:
        answer["links"] = {to: _link(to, document) for to in told.links}
    operation["responses"] = {status: answer} | _errors(told.problems, document["components"]["responses"])


def _link(to: str, document: dict[str, Any]) -> dict[str, Any]:
    """That the operation `to` is a sensible next one on the object that the path names."""
    (path,) = (
        path
        for path, item in document["paths"].items()
        if any(each["operationId"] == to for each in item.values())
    )
    parts = {part: f"$request.path.{part}" for part in re.findall(r"\{(\w+)\}", path)}
    return {"operationId": to, "parameters": parts, "description": REASONS[to]}


def _errors(names: Sequence[str], shared: dict[str, Any]) -> dict[str, Any]:
    """References to one response per status of the problems, and to one for any other problem."""
    found: dict[str, Any] = {}
    by_status = sorted(set(names), key=lambda name: (KINDS[name].status, list(KINDS).index(name)))
    for status, group in groupby(by_status, key=lambda name: KINDS[name].status):
        kinds = list(group)
        key = "Or".join("".join(part.title() for part in name.split("-")) for name in kinds)
        shared.setdefault(key, _error(kinds))
        found[str(status)] = {"$ref": f"#/components/responses/{key}"}
    shared.setdefault("AnyOther", _error(["not-found"]) | {"description": "Any other problem"})
    return found | {"default": {"$ref": "#/components/responses/AnyOther"}}


def _error(names: Sequence[str]) -> dict[str, Any]:
    """The response for problems of one status, with an example of each."""
    examples = {name: {"summary": KINDS[name].title, "value": _example(name)} for name in names}
    content = {MEDIA_TYPE: {"schema": {"$ref": _SCHEMAS.format(name="Problem")}, "examples": examples}}
    response: dict[str, Any] = {
        "description": "; or: ".join(KINDS[name].title for name in names),
        "content": content,
    }
    if not {"unauthorized", "forbidden"}.isdisjoint(names):
        response["headers"] = {"WWW-Authenticate": _header("How to authenticate", "string", "Bearer")}
    if not _MAY_ASK_TO_WAIT.isdisjoint(names):
        response["headers"] = {"Retry-After": _header("Seconds to wait, where known", "integer", 1)}
    return response


def _header(description: str, kind: str, example: str | int) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}, "example": example}


def _example(name: str) -> dict[str, Any]:
    definite = KINDS[name].definite is not False
    return as_json(problem(name, "What was wrong in this case", definite=definite))


def _simplify(document: dict[str, Any]) -> None:
    """Say in one way what may be said in several."""
    for operation in operations_of(document):
        for parameter in operation.get("parameters", []):
            parameter["schema"] = _present(parameter["schema"])
            if parameter["required"]:  # The API pages fill it in; what may be left out is better left out.
                parameter["example"] = parameter["schema"]["examples"][0]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            content["schema"] = _named(_present(content["schema"]), operation, document)
    for part in _parts(document):
        _simplify_part(part)


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of what may be left out, where the framework says null: no parameter and no body is sent as null."""
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(choices) != 1 or len(schema["anyOf"]) == 1:
        return schema
    (present,) = choices
    kept = {} if "$ref" in present else {name: each for name, each in schema.items() if name != "anyOf"}
    return {**kept, **present}


def _named(schema: dict[str, Any], operation: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a body, named after the operation: generators call a class of theirs like that."""
    if "$ref" in schema:
        return schema
    name = f"{operation['operationId'][0].upper()}{operation['operationId'][1:]}Body"
    _add_schemas({name: {**schema, "title": name}}, document)
    return {"$ref": _SCHEMAS.format(name=name)}


def _simplify_part(part: dict[str, Any]) -> None:
    # A tuple's length is bounded by maxItems already; a schema that is no object is more than some generators read.
    if part.get("items") is False:
        del part["items"]
    # A default that is an object is none that a generated class could have; replicas fill it in as documented.
    if isinstance(part.get("default"), dict) and ("$ref" in part or "anyOf" in part):
        del part["default"]
    # Else clients in Go, Java, C# and Rust have 32 bits for it, and cannot read a time in microseconds.
    if part.get("type") == "integer" and part.get("maximum", INT32_MAX + 1) > INT32_MAX:
        part["format"] = "int64"
    if isinstance(part.get("description"), str):
        part["description"] = inspect.cleandoc(part["description"])


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """All JSON objects within a document, each before what it holds."""
    if isinstance(part, dict):
        yield part
        for each in part.values():
            yield from _parts(each)
    elif isinstance(part, list):
        for each in part:
            yield from _parts(each)
