"""The mapping over a replicated dictionary: CPython's own suite for mappings, and a dict beside it for any operations.

Of CPython's `TestMappingProtocol` these are left out, and why: `test_values`, `test_items`, `test_clear`, `test_update` and
`test_fromkeys` use whole numbers as keys, and ours are text; `test_copy` wants a copy of the same class, which would need a
name on the replicas; `test_setdefault` changes a list within the mapping, and what comes over the network is a copy;
`test_constructor` wants `Mapping(x=1)`, and ours is made with a client and a name; `test_popitem` puts and takes 16,000
keys for the sake of a hash table's growth. Where the interpreter ships no `test` package, only the models here run.
"""

import copy
import itertools
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.client_sdk import BadInput, Client, connect
from quorate.client_sdk.adapters.standard_mapping import Mapping
from tests.unit.client_sdk.loopback import cluster_of
from tests.unit.client_sdk.scripted import document_of

FROM_BASIC = tuple(
    f"test_{name}"
    for name in (
        *(
            "read",
            "write",
            "constructor",
            "bool",
            "keys",
            "values",
            "items",
            "len",
            "getitem",
            "update",
            "get",
        ),
        *("setdefault", "popitem", "pop"),
    )
)
FROM_FULL = tuple(f"test_{name}" for name in ("bool", "keys", "contains", "len", "getitem", "get", "pop"))

New = Callable[[], Mapping]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster_of(document_of("r1", "r2", "r3")) as cluster, connect(cluster.document) as made:
        yield made


@pytest.fixture(scope="module")
def new(client: Client) -> New:
    """An empty mapping, of a name that nobody had."""
    numbers = itertools.count(1)
    return lambda: Mapping(client, f"mapping-{next(numbers)}")


@pytest.mark.parametrize(
    ("suite", "name"),
    [("BasicTestMappingProtocol", name) for name in FROM_BASIC]
    + [("TestMappingProtocol", name) for name in FROM_FULL],
)
def test_cpythons_own_suite_accepts_it(new: New, suite: str, name: str) -> None:
    suites = pytest.importorskip("test.mapping_tests", reason="this interpreter ships no test package")

    class Suite(getattr(suites, suite)):  # type: ignore[misc]
        def _reference(self) -> dict[str, Any]:
            return {"1": "2", "key1": "value1", "key2": [1, 2, 3]}  # a tuple would come back as a list

        def _empty_mapping(self) -> Mapping:
            return new()

    Suite(name).debug()


KEYS = st.sampled_from(["a", "=20", "é /"])
VALUES = st.none() | st.integers(0, 3) | st.lists(st.text(max_size=2), max_size=2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["get", "in", "del", "pop"]), KEYS, st.none()),
        st.tuples(st.sampled_from(["set", "setdefault", "update", "pop or"]), KEYS, VALUES),
        st.tuples(st.sampled_from(["len", "keys", "values", "items", "clear", "=="]), st.none(), st.none()),
    ),
    max_size=25,
)


STEP_OF: dict[str, Callable[[Any, Any, Any], Any]] = {
    "get": lambda mapping, key, _: mapping[key],
    "in": lambda mapping, key, _: key in mapping,
    "del": lambda mapping, key, _: mapping.__delitem__(key),
    "pop": lambda mapping, key, _: mapping.pop(key),
    "pop or": lambda mapping, key, value: mapping.pop(key, value),
    "set": lambda mapping, key, value: mapping.__setitem__(key, value),
    "setdefault": lambda mapping, key, value: mapping.setdefault(key, value),
    "update": lambda mapping, key, value: mapping.update({key: value, "z": 1}),
    "len": lambda mapping, *_: len(mapping),
    "keys": lambda mapping, *_: sorted(mapping.keys()),
    "values": lambda mapping, *_: sorted(map(repr, mapping.values())),
    "items": lambda mapping, *_: sorted(map(repr, mapping.items())),
    "clear": lambda mapping, *_: mapping.clear(),
    "==": lambda mapping, *_: mapping == {"a": 1},
}


def did(mapping: Any, step: tuple[str, Any, Any]) -> Any:
    """What a step gives, or that there is no such key."""
    name, key, value = step
    try:
        return STEP_OF[name](mapping, key, value)
    except KeyError as error:
        return repr(error)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_a_dict_beside_it_gives_the_same(new: New, steps: list[tuple[str, Any, Any]]) -> None:
    ours, model = new(), dict[str, Any]()
    for step in steps:
        assert did(ours, step) == did(model, step), step
    assert ours == model
    assert ours.copy() == model


def test_one_of_many_takes_each_value(client: Client) -> None:
    """By `pop`, `popitem` and `del`, each of several objects of the same name."""
    mappings = [Mapping(client, "taken") for _ in range(4)]
    for number in range(12):
        mappings[0][f"k{number:02}"] = number
    together = threading.Barrier(len(mappings))

    def take(mapping: Mapping) -> list[int]:
        together.wait(30)
        taken = [mapping.pop(f"k{number:02}", None) for number in range(4)]
        for number in range(4, 8):
            try:
                del mapping[f"k{number:02}"]
                taken.append(number)
            except KeyError:
                pass
        while True:
            try:
                taken.append(mapping.popitem()[1])
            except KeyError:
                return [each for each in taken if each is not None]

    with ThreadPoolExecutor(len(mappings)) as pool:
        taken = [number for each in pool.map(take, mappings) for number in each]
    assert sorted(taken) == list(range(12))
    assert not mappings[0]


def test_a_walk_goes_in_the_order_of_keys_and_unions_are_plain_dicts(new: New) -> None:
    mapping = new()
    mapping |= {"b": 1, "a": None}
    assert isinstance(mapping, Mapping)
    assert list(mapping) == ["a", "b"]
    assert mapping | {"a": 2} == {"a": 2, "b": 1}
    assert {"a": 2, "c": 3} | mapping == {"a": None, "b": 1, "c": 3}
    assert type(mapping | {}) is type({} | mapping) is dict
    with pytest.raises(TypeError):
        mapping | [("a", 1)]
    assert mapping.popitem() == ("a", None)
    assert mapping.popitem() == ("b", 1)
    with pytest.raises(KeyError):
        mapping.popitem()


def test_two_objects_of_one_name_are_one_mapping(client: Client) -> None:
    one, other = Mapping(client, "shared"), Mapping(client, "shared")
    one["a"] = {"b": None}
    assert other == one == {"a": {"b": None}}
    assert other["a"] == {"b": None}
    del other["a"]
    assert not one


def test_a_null_is_a_value_and_an_absent_key_is_none(new: New) -> None:
    mapping = new()
    mapping["a"] = None
    assert "a" in mapping
    assert mapping["a"] is None
    assert "b" not in mapping
    assert not mapping.__contains__(1)


def test_setdefault_is_won_by_one_of_two(client: Client) -> None:
    one, other = Mapping(client, "won"), Mapping(client, "won")
    assert [one.setdefault("k", 1), other.setdefault("k", 2)] == [1, 1]


def test_wrong_keys_are_named(new: New) -> None:
    with pytest.raises(BadInput, match="the key 1 is of type int"):
        new()[1] = "x"  # type: ignore[index]
    with pytest.raises(BadInput, match="has half a surrogate pair"):
        new()["half \ud800"] = "x"
    with pytest.raises(TypeError):
        hash(new())
    assert "mapping-" in repr(new())


@pytest.mark.parametrize("key", ["", "é" * 34, "k" * 201, "\udfff", 3, None])
def test_a_key_that_cannot_be_there_is_not_there(new: New, key: Any) -> None:
    mapping = new()
    assert key not in mapping
    assert mapping.get(key, 5) == 5
    assert mapping.pop(key, 5) == 5
    for look in (mapping.__getitem__, mapping.__delitem__, mapping.pop):
        with pytest.raises(KeyError):
            look(key)
    for store in (mapping.__setitem__, mapping.setdefault):
        with pytest.raises(BadInput, match="key"):
            store(key, 1)


def test_setdefault_gives_what_is_stored_each_time(new: New) -> None:
    mapping, mine = new(), (1, [2])
    assert [mapping.setdefault("k", mine) for _ in range(2)] == [[1, [2]], [1, [2]]]
    mapping.setdefault("k2", mine)[1].append(3)
    assert mine == (1, [2])


def test_what_is_no_client_is_named() -> None:
    with pytest.raises(TypeError, match=r"'my-cluster/cluster.toml', of type str: give what connect\("):
        Mapping("my-cluster/cluster.toml", "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_neither_pickled_nor_copied(new: New, act: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"a Mapping is neither pickled nor copied: .* another Mapping"):
        act(new())
