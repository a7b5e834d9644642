"""What users may import, and what comes along with it."""

import inspect
import subprocess
import sys
from typing import Any, assert_type, get_overloads

import pytest

from quorate import client_sdk
from quorate.client_sdk import AsyncQueue, Queue, errors

PUBLIC = [
    "AsyncClient",
    "AsyncDictionary",
    "AsyncQueue",
    "AsyncRegister",
    "BadCluster",
    "BadInput",
    "Client",
    "ClientTls",
    "Closed",
    "ClusterDocument",
    "DeadLetter",
    "Delivery",
    "Dictionary",
    "Distribution",
    "FrontEndCounts",
    "History",
    "Lease",
    "LeaseCounts",
    "LeaseLost",
    "LimitReached",
    "OperationKind",
    "OutcomeUnknown",
    "Page",
    "Queue",
    "QuorateError",
    "RefusedByReplicas",
    "Register",
    "Unavailable",
    "connect",
    "connect_async",
]


def test_the_public_names_are_these() -> None:
    assert sorted(client_sdk.__all__) == PUBLIC
    assert dir(client_sdk) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(client_sdk, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        _ = client_sdk.conect


def test_the_machine_comes_without_a_transport() -> None:
    code = (
        "import sys, quorate.client_sdk.protocol.front_end; print({'httpx', 'asyncio'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["Queue", "Register", "Dictionary", "Client"])
def test_both_clients_have_the_same_methods_and_arguments(name: str) -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        members = inspect.getmembers(kind, inspect.isfunction)
        return {
            method.removeprefix("a") if method == "aclose" else method: list(
                inspect.signature(made).parameters
            )
            for method, made in members
            if not method.startswith("_")
        }

    assert methods(getattr(client_sdk, name)) == methods(getattr(client_sdk, f"Async{name}"))


@pytest.mark.parametrize("name", ["Queue", "Register", "Dictionary"])
def test_blocking_methods_have_the_signatures_and_the_help_of_the_asyncio_ones(name: str) -> None:
    handle = getattr(client_sdk, f"Async{name}")
    for method, made in inspect.getmembers(getattr(client_sdk, name), inspect.isfunction):
        if not method.startswith("_"):
            awaited = getattr(handle, method)
            assert inspect.signature(made) == inspect.signature(awaited)
            assert made.__doc__ == awaited.__doc__
            assert not inspect.iscoroutinefunction(made)


def test_a_type_checker_knows_that_several_items_are_a_list() -> None:
    """`make check` reads this; one item may be anything, and so may nothing."""

    def blocking(queue: Queue) -> None:
        assert_type(queue.dequeue(max_items=2), list[Any])
        assert_type(queue.dequeue(2, wait_s=1), list[Any])
        assert_type(queue.dequeue(), Any)

    async def awaited(queue: AsyncQueue) -> None:
        assert_type(await queue.dequeue(max_items=2), list[Any])
        assert_type(await queue.dequeue(), Any)

    of_each = get_overloads(AsyncQueue.dequeue)
    assert [inspect.signature(each).return_annotation for each in of_each] == [Any, list[Any]]


def test_every_error_says_whether_it_is_definite() -> None:
    made = [
        errors.QuorateError("x", definite=True),
        errors.Unavailable("x", definite=False),
        errors.OutcomeUnknown("x"),
        errors.LeaseLost(("1/x",)),
        errors.RefusedByReplicas("x", definite=True),
        errors.LimitReached("x", "too-many-keys"),
        errors.BadInput("x"),
        errors.BadCluster("x"),
        errors.Closed("x", definite=False),
    ]
    assert {type(each) for each in made} == {errors.QuorateError, *errors.QuorateError.__subclasses__()}
    assert [each.definite for each in made] == [True, False, False, True, True, True, True, True, False]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = {line.split()[1] for line in (errors.__doc__ or "").splitlines() if "── " in line}
    assert drawn == {each.__name__ for each in errors.QuorateError.__subclasses__()} | {"BadCluster"}
