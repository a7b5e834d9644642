"""Objects of types of one's own for plain REST callers: an endpoint for each operation of a class, with its arguments as the body.

Owns paths, bodies and answers, and what is said where there is no code. Must not know how calls run.
"""

import inspect
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, get_type_hints

from fastapi import APIRouter
from pydantic import Field, create_model
from starlette.responses import Response

from ...adts.plain_class import OK, BadClass, PlainClass, arguments_text, text_of, thawed
from ...adts.specification import Invocation
from ...adts.specification import Response as Answer
from ...adts.types.catalogue import object_name
from ...adts.users_code import told
from ...api_specs.limits import Limits
from ...api_specs.values import BadValue, check_value
from ...client_sdk.protocol.core.values import Invoke
from ..http.json_body import JsonRoute
from ..http.large_bodies import read_apart
from ..http.problems import Refusal
from ..http.routers import OWN_TAG, tagged
from ..service.own_types import OwnTypes
from .answers import json_response, labelled
from .forms import Forms
from .object_models import Body
from .operations import Keyed, Name, Operations

_log = logging.getLogger(__name__)

_PREFIX: Final = "/v1/objects"


def own_type_routers(operations: Operations, types: OwnTypes) -> Iterator[APIRouter]:
    """The endpoints of each type whose code is here; and one that says why another path leads nowhere."""
    served = dict(types)
    ids: set[str] = set()
    for type_name, found in types.items():
        if isinstance(found, PlainClass):
            try:
                router = _router(operations, type_name, found, ids)
            except KeyboardInterrupt:  # Ctrl-C: no loop sees to it yet.
                raise
            except BaseException as error:  # noqa: BLE001 - the border to the user's code: a replica starts whatever a class is like
                served[type_name] = f"its endpoints cannot be made: {told(error)}"
                _log.warning("no call of the type %s can be run here: %s", type_name, served[type_name])
            else:
                yield router
    yield _elsewhere(served)


def _router(operations: Operations, type_name: str, found: PlainClass, ids: set[str]) -> APIRouter:
    router = tagged(OWN_TAG, prefix=f"{_PREFIX}/{type_name}/{{name}}", route_class=JsonRoute)
    forms = Forms(_title(_camel(type_name)))
    for operation in found.arguments:
        id = _new_id(type_name, operation, ids)
        router.add_api_route(
            f"/{operation}",
            _endpoint(operations, type_name, found, operation, _body_model(id, found, operation, forms)),
            methods=["POST"],
            operation_id=id,
            summary=f"{operation} of a {type_name}",
            description=inspect.getdoc(found.method(operation)) or f"The operation {operation}.",
            response_model=_answer_model(id, found, operation, forms),
        )
    return router


def _new_id(type_name: str, operation: str, ids: set[str]) -> str:
    """As generated clients call it: `add` of `cart` is `cartAdd`; a number behind it where that is another one's already."""
    wanted = id = _camel(f"{type_name}-{operation}")
    number = 1
    while id in ids:
        number += 1
        id = f"{wanted}{number}"
    ids.add(id)
    return id


def _camel(words: str) -> str:
    first, *others = words.replace("_", "-").split("-")
    return first + "".join(map(_title, others))


def _endpoint(operations: Operations, type_name: str, found: PlainClass, operation: str, model: Any) -> Any:
    async def call(name: Name, asked: Keyed, body: Any = None) -> Response:
        # As they came: to copy them, as the framework does, takes longer than all else.
        given = (
            {} if body is None else {names[field]: getattr(body, field) for field in body.model_fields_set}
        )
        invocation = await read_apart(
            partial(_invocation, found, operation, given, operations.limits), is_begun=True
        )
        invoke = Invoke(object_name(type_name, name), found, invocation, asked.key)
        done = await operations.decide(asked, invoke)
        return labelled(_told, done)

    names = {field: each.alias for field, each in model.model_fields.items()}
    needs_body = found.needs_arguments(operation)
    call.__annotations__["body"] = model if needs_body else model | None
    if needs_body:
        call.__defaults__ = None
    return call


def _invocation(found: PlainClass, operation: str, given: Mapping[str, Any], limits: Limits) -> Invocation:
    """The call with these arguments, which are let go: a search for garbage would look at all that is in them, of all calls that wait.
    Raises Refusal, or BadValue."""
    try:
        invocation = found.call(operation, **given)
    except BadClass as error:
        raise Refusal("malformed", str(error)) from None
    finally:
        for each in given.values():
            if isinstance(each, list | dict):
                each.clear()
    if (wrong := check_value(arguments_text(invocation), limits)) is not None:
        raise BadValue(f"the arguments: {wrong}")
    return invocation


def _told(answer: Answer) -> Response:
    result = "".join(f',"result":{text_of(each)}' for each in answer.results)
    return json_response(f'{{"outcome":{text_of(answer.condition)}{result}}}')


def _body_model(id: str, found: PlainClass, operation: str, forms: Forms) -> Any:
    """The arguments. A field has a name of ours, lest it be one of the framework's."""
    fields: dict[str, Any] = {}
    method = found.method(operation)
    hints = get_type_hints(method, include_extras=True)
    for number, parameter in enumerate(list(inspect.signature(method).parameters.values())[1:]):
        is_wanted = parameter.default is inspect.Parameter.empty
        field = Field(
            default=... if is_wanted else parameter.default,
            alias=parameter.name,
            examples=[thawed(each) for each in found.arguments[operation][parameter.name][:1]],
        )
        fields[f"argument_{number}"] = forms.of(hints.get(parameter.name, Any)), field
    return create_model(f"{_title(id)}Arguments", __base__=Body, **fields)


def _answer_model(id: str, found: PlainClass, operation: str, forms: Forms) -> Any:
    outcome = Field(description="Ok, or the exception that the operation ended with", examples=["Ok"])
    fields: dict[str, Any] = {"outcome": (str, outcome)}
    if f"{operation}/{OK}" in found.results:
        result = get_type_hints(found.method(operation), include_extras=True).get("return", Any)
        fields["result"] = (forms.of(result) | None, Field(default=None, description="What it returned"))
    return create_model(f"{_title(id)}Answer", **fields)


def _title(word: str) -> str:
    return word[:1].upper() + word[1:]


def _elsewhere(types: OwnTypes) -> APIRouter:
    router = APIRouter()

    @router.post(_PREFIX + "/{type_name}/{name}/{operation}", include_in_schema=False)
    async def refuse(type_name: str, name: str, operation: str) -> None:
        del name
        found = types.get(type_name)
        if found is None:
            known = ", ".join(types) or "none"
            raise Refusal(
                "no-such-path",
                f"the cluster has no type {type_name[:64]!r}: its document's [types] name {known}",
            )
        if isinstance(found, str):
            raise Refusal(
                "type-not-loaded",
                f"this replica keeps objects of type {type_name}, and cannot run their code: {found}",
            )
        raise Refusal(
            "no-such-path",
            f"{type_name} has no operation {operation[:64]!r}: it has {', '.join(found.arguments)}",
        )

    return router
