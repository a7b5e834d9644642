"""The committed OpenAPI documents say all that a generator of clients, or a reader, needs."""

import re
from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs
import pytest

from quorate.api_specs.problems import KINDS, MEDIA_TYPE, TYPE_PREFIX
from quorate.replica.http.routers import PROTOCOL_TAG
from quorate.replica.openapi.builder import INT32_MAX, operations_of
from quorate.replica.openapi.table import OF_OWN_TYPES, OPERATIONS, TAGS
from tests.support.documents import API, BOTH, PROTOCOL

BY_ID: Final[dict[str, dict[str, Any]]] = {each["operationId"]: each for each in operations_of(BOTH)}
JSON: Final = "application/json"
OPEN: Final = {"getLiveness", "getReadiness", "getQuorumHealth", "getProblemType"}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """The part itself, or what it refers to, with what it says besides."""
    found: Any = BOTH
    if "$ref" not in part:
        return part
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return {**found, **part}


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Whether `value` is in the form of a schema of the document."""
    whole = {"components": BOTH["components"], "allOf": [schema]}
    return jsonschema_rs.is_valid(whole, value)


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each thing that an operation takes or answers, by where it stands."""
    if JSON in operation.get("requestBody", {}).get("content", {}):
        yield "request", operation["requestBody"]["content"][JSON]
    for status, response in operation["responses"].items():
        for media_type, content in resolved(response).get("content", {}).items():
            if media_type != "application/octet-stream":
                yield status, content


def examples(content: dict[str, Any]) -> list[Any]:
    """The examples of a body: beside its schema, in it, in its choices, or put together from those of its members."""
    schema = resolved(content["schema"])
    found = [each["value"] for each in content.get("examples", {}).values()]
    found += [content["example"]] if "example" in content else []
    found += schema.get("examples", [])
    found += [each for choice in schema.get("oneOf", []) for each in examples({"schema": choice})]
    members = {name: resolved(each) for name, each in schema.get("properties", {}).items()}
    if members and all("examples" in each for each in members.values()):
        found.append({name: each["examples"][0] for name, each in members.items()})
    return found


def test_an_application_sees_nothing_of_the_replica_protocol() -> None:
    """No operation, and no message that a generator would make a class of."""
    assert not any(PROTOCOL_TAG in each["tags"] for each in operations_of(API))
    assert all(each["tags"] == [PROTOCOL_TAG] for each in operations_of(PROTOCOL))
    for document in (API, PROTOCOL):
        assert used_schemas(document) == document["components"]["schemas"].keys()


def used_schemas(document: dict[str, Any]) -> set[str]:
    """Those that operations and responses refer to, and those that these refer to."""
    schemas = document["components"]["schemas"]
    found: set[str] = set()
    waiting: list[Any] = [document["paths"], document["components"]["responses"]]
    while waiting:
        named = {each["$ref"].rpartition("/")[2] for each in parts(waiting.pop()) if "$ref" in each}
        waiting += [schemas[name] for name in named & schemas.keys() - found]
        found |= named & schemas.keys()
    return found


def test_what_has_one_name_says_the_same_in_both_documents() -> None:
    for kind in ("schemas", "responses", "securitySchemes"):
        first, second = API["components"][kind], PROTOCOL["components"][kind]
        assert {name for name in first.keys() & second.keys() if first[name] != second[name]} == set()


def test_ids_are_verbs_in_camel_case_and_have_a_row_each() -> None:
    assert BY_ID.keys() == OPERATIONS.keys()
    assert len(BY_ID) == sum(1 for document in (API, PROTOCOL) for _ in operations_of(document))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", each) for each in BY_ID)


@pytest.mark.parametrize("name", BY_ID)
def test_operation_is_described(name: str) -> None:
    operation = BY_ID[name]
    assert operation["summary"]
    assert len(operation["description"]) > len("Read a register.")
    assert set(operation["tags"]) <= TAGS.keys()
    for parameter in operation.get("parameters", []):
        assert parameter["description"]
        assert parameter["schema"]["examples"]
    for response in operation["responses"].values():
        assert resolved(response)["description"] not in {"", "Successful Response"}


@pytest.mark.parametrize("name", BY_ID)
def test_bodies_are_typed_and_examples_are_in_form(name: str) -> None:
    for where, content in contents(BY_ID[name]):
        schema = content["schema"]
        assert "$ref" in schema or schema == {"type": "string"}, where
        for example in examples(content):
            assert is_valid(example, schema), (where, example)


@pytest.mark.parametrize("name", [each for each in BY_ID if BY_ID[each]["tags"] != [PROTOCOL_TAG]])
def test_every_body_of_an_application_has_an_example(name: str) -> None:
    found = {where: examples(content) for where, content in contents(BY_ID[name])}
    assert [where for where, each in found.items() if not each] == []


@pytest.mark.parametrize("name", BY_ID)
def test_errors_are_problems_with_an_example_of_each_kind(name: str) -> None:
    operation, shown = BY_ID[name], set()
    assert "default" in operation["responses"]
    for status, reference in operation["responses"].items():
        if status.startswith("2"):
            continue
        content = resolved(reference)["content"]
        assert list(content) == [MEDIA_TYPE]
        assert content[MEDIA_TYPE]["schema"] == {"$ref": "#/components/schemas/Problem"}
        for kind, example in content[MEDIA_TYPE]["examples"].items():
            assert example["value"]["type"] == TYPE_PREFIX + kind
            assert status in {"default", str(KINDS[kind].status)}
            assert KINDS[kind].definite in {None, example["value"]["definite"]}
            shown |= {kind} if status != "default" else set()
    assert shown == set(OPERATIONS[name].problems)
    assert ("unauthorized" in shown) == (name not in OPEN)


def test_every_kind_of_problem_is_some_operations() -> None:
    """But those that no operation of the document can answer: about other paths and methods, and what is no proper request."""
    told = {problem for each in (*OPERATIONS.values(), OF_OWN_TYPES) for problem in each.problems}
    improper = {
        "wrong-host",
        "foreign-origin",
        "head-too-large",
        "url-too-long",
        "unknown-coding",
        "http-version",
    }
    assert KINDS.keys() - told == {"method-not-allowed", "no-such-path"} | improper


def test_token_is_asked_for_wherever_the_replica_does() -> None:
    assert API["components"]["securitySchemes"] == PROTOCOL["components"]["securitySchemes"]
    asked = {name: {scheme for way in each["security"] for scheme in way} for name, each in BY_ID.items()}
    assert {name for name, schemes in asked.items() if not schemes} == OPEN
    assert all(schemes == {"token"} for name, schemes in asked.items() if name not in OPEN)


@pytest.mark.parametrize("name", BY_ID)
def test_links_lead_to_operations_and_give_what_their_paths_ask_for(name: str) -> None:
    parameters = {each["name"] for each in BY_ID[name].get("parameters", []) if each["in"] == "path"}
    for response in BY_ID[name]["responses"].values():
        for link in response.get("links", {}).values():
            target = BY_ID[link["operationId"]]
            asked = {each["name"] for each in target["parameters"] if each["in"] == "path"}
            assert asked == link["parameters"].keys()
            assert asked <= parameters
            assert link["parameters"] == {each: f"$request.path.{each}" for each in asked}
            assert link["description"]


def test_an_enqueued_item_leads_to_its_dequeue_and_a_written_value_to_its_read() -> None:
    def leads_to(name: str) -> set[str]:
        (answer,) = (each for status, each in BY_ID[name]["responses"].items() if status.startswith("2"))
        return {link["operationId"] for link in answer.get("links", {}).values()}

    assert "dequeue" in leads_to("enqueue")
    assert "readRegister" in leads_to("writeRegister") & leads_to("compareAndSetRegister")
    assert "getEntry" in leads_to("putEntry") & leads_to("putEntryIfAbsent") & leads_to("deleteEntry")


def parts(part: Any) -> Iterator[dict[str, Any]]:
    """All JSON objects within a schema."""
    if isinstance(part, dict):
        yield part
        for each in part.values():
            yield from parts(each)
    elif isinstance(part, list):
        for each in part:
            yield from parts(each)


def test_nothing_is_said_in_a_form_that_generators_do_not_read() -> None:
    integers = [part for part in parts(BOTH) if part.get("type") == "integer"]
    assert {part["format"] for part in integers if "format" in part} == {"int64"}
    assert all("format" in part or part["maximum"] <= INT32_MAX for part in integers)
    for part in parts(BOTH["components"]["schemas"]):
        assert part.get("items") is not False
        assert not (isinstance(part.get("default"), dict) and ("$ref" in part or "anyOf" in part))
    for operation in BY_ID.values():
        sent = [each["schema"] for each in operation.get("parameters", [])]
        sent += [each["schema"] for each in operation.get("requestBody", {}).get("content", {}).values()]
        assert all({"type": "null"} not in each.get("anyOf", []) for each in sent)
