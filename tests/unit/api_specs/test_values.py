"""Values: what is a value, its one text form, and the sentence for what is none."""

import json
import math
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import Value
from quorate.api_specs import values
from quorate.api_specs.limits import (
    DEFAULTS,
    ENTRY_BYTES,
    STATE_BYTES_MAX,
    WORK_OF_A_WAITING_BYTE,
    Limits,
)
from quorate.api_specs.values import (
    BRACKET_BYTES,
    PARSED_CHARS_MAX,
    BadValue,
    check_value,
    comparable,
    from_value,
    is_equal,
    json_to_value,
    outside_strings,
    to_value,
    waiting_weight,
    work_bytes,
)
from tests.support.calls import calls

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES)
def test_a_value_comes_back_as_it_went_in(value: Any) -> None:
    assert from_value(to_value(value)) == value
    assert json.loads(to_value(value)) == value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), SCALARS))
def test_equal_dicts_are_equal_text(value: dict[str, Any]) -> None:
    assert to_value(value) == to_value(dict(reversed(value.items())))


def test_text_has_no_blanks_and_sorted_keys() -> None:
    assert (
        to_value({"b": [1, 2.5, None], "a": {"y": True, "x": "é"}})
        == '{"a":{"x":"é","y":true},"b":[1,2.5,null]}'
    )
    assert to_value((1, "x")) == '[1,"x"]'


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


class _Real(float):
    pass


def test_subclasses_of_scalars_are_taken_for_what_they_are() -> None:
    assert to_value([_Text("x"), _Whole(3), _Real(1.5), {_Text("k"): 1}]) == '["x",3,1.5,{"k":1}]'


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (math.nan, "the value is nan"),
        ({"a": [1, math.inf]}, r"the value at \.a\[1\] is inf"),
        ([1 << 64], r"\[0\] is an integer beyond 64 bits"),
        (-(1 << 63) - 1, "beyond 64 bits"),
        ("\ud800", "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"a": {1: 2}}, r"the value at \.a has the key 1"),
        ({"a": b"x"}, "of type bytes"),
        ({1, 2}, "of type set"),
        ("x" * 100, "102 bytes of JSON: at most 100"),
    ],
)
def test_what_is_no_value_is_named_with_its_place(bad: Any, sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        to_value(bad, Limits(value_bytes_max=100))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ([1, [1 << 64]], r"the value at \[1\]\[0\] is an integer beyond 64 bits"),
        ({"a": -(1 << 63) - 1}, r"the value at \.a is an integer beyond 64 bits"),
        ([[[[1]]]], "nested deeper than 3"),
        ("x" * 100, "102 bytes of JSON: at most 100"),
        ([1] * 60, "121 bytes of JSON: at most 100"),
    ],
)
def test_what_a_parser_made_is_refused_as_anything_else_is(bad: Any, sentence: str) -> None:
    limits = Limits(value_bytes_max=100, value_depth_max=3)
    with pytest.raises(BadValue, match=sentence):
        json_to_value(bad, limits)
    assert check_value(json.dumps(bad), limits) is not None


@given(VALUES)
def test_what_a_parser_made_has_the_same_text_as_anything_else(value: Any) -> None:
    found = json.loads(json.dumps(value))
    assert json_to_value(found) == to_value(found)


@given(VALUES, st.integers(1, 9))
def test_text_is_without_its_strings_however_it_is_cut(value: Any, step: int) -> None:
    text = json.dumps([value, "\\", '"', '\\"']).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(values, "_STEP_BYTES", step)
        assert outside_strings(text) == re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text)


def test_numbers_far_from_1_are_read_by_python_to_be_checked() -> None:
    assert calls(lambda: check_value(f"[{','.join(['1e300'] * 1000)}]"))["_double"] == 1000


@pytest.mark.parametrize("beyond", ["1e999", "-1e0309"])
def test_a_number_beyond_a_double_is_refused(beyond: str) -> None:
    assert check_value(f"[{beyond}]") == "the value is not JSON text: Number out of range - at `$[0]`"


def test_what_is_nested_within_the_limit_is_not_walked_through() -> None:
    """A megabyte of small arrays took ten times as long to walk through as to parse."""
    found = [[[]], {"[[[": [1]}] * 500
    text = json.dumps(found, separators=(",", ":"))
    limits = Limits(value_depth_max=3)
    assert calls(lambda: check_value(text, limits))["_look_into"] == 0
    assert calls(lambda: json_to_value(found, limits))["_look_into"] == 0
    assert check_value(text, Limits(value_depth_max=2)) is not None


@pytest.mark.parametrize(
    "text", ["[" * 60 + "1" + "]" * 60 + " " * 60, '"' + "x" * 200 + '"', f"[{'0' * 200}"]
)
def test_a_long_text_is_parsed_once_however_often_it_comes(text: str) -> None:
    """Each decision on a queue had all that it leases parsed again, by every replica: 60 ms for 480 kB of nested arrays."""
    verdicts: list[str | None] = []
    parsings = [calls(lambda: verdicts.append(check_value(text)))["parsed"] for _ in range(3)]
    assert parsings == [1, 0, 0]
    assert len(set(verdicts)) == 1
    assert (verdicts[0] is None) == (not text.startswith("[0"))


def test_what_was_found_of_a_text_holds_for_those_limits_alone() -> None:
    text = json.dumps([[[["x" * 200]]]])
    assert check_value(text, Limits(value_depth_max=4)) is None
    assert check_value(text, Limits(value_depth_max=3)) is not None
    assert check_value(text, Limits(value_depth_max=4)) is None


def test_what_is_remembered_of_texts_is_bounded() -> None:
    values._verdict.cache_clear()
    tracemalloc.start()
    try:
        for number in range(values.VERDICTS_MAX + 100):
            check_value(f'"{number:0200d}"')
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values._verdict.cache_info().currsize == values.VERDICTS_MAX
    assert taken < 400 * values.VERDICTS_MAX


def test_nesting_ends_at_the_limit() -> None:
    limits = Limits(value_depth_max=3)
    assert to_value([[["deep"]]], limits) == '[[["deep"]]]'
    with pytest.raises(BadValue, match=r"nested deeper than 3"):
        to_value([[[["deeper"]]]], limits)
    assert to_value([[[]]], limits) == "[[[]]]"


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadValue, match="nested deeper"):
        to_value(endless)


def test_a_value_that_holds_itself_twice_ends_at_the_size_limit() -> None:
    doubling: list[Any] = []
    doubling += [doubling, doubling]
    with pytest.raises(BadValue, match="over 1000 bytes"):
        to_value(doubling, Limits(value_bytes_max=1000))


def _are_equal(left: Any, right: Any) -> bool:
    """Equality of JSON's data model, from Python's: there True is no number."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_are_equal(left[key], right[key]) for key in left)
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


_NUMBERS = st.sampled_from(
    [
        0,
        -0.0,
        1,
        1.0,
        True,
        False,
        1.5,
        2**53,
        2.0**53,
        2**53 + 1,
        2**53 + 2,
        2.0**63,
        2**63,
        2**64 - 1,
        2.0**64,
        -(2**63),
        -(2.0**63),
        1e16,
        10**16,
        1e300,
        "1.0",
        "1",
        '"1.0',
        "\\",
        "1e0",
    ]
)
_NUMBERED = st.recursive(
    _NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NUMBERS.map(str), inner, max_size=3),
)


@given(_NUMBERED, _NUMBERED)
def test_values_are_equal_that_are_equal_in_json(left: Any, right: Any) -> None:
    assert is_equal(to_value(left), to_value(right)) == _are_equal(left, right)


@given(VALUES)
def test_comparable_text_is_json_of_an_equal_value(value: Any) -> None:
    assert _are_equal(json.loads(comparable(to_value(value)) or ""), value)


def test_only_numbers_as_large_as_integers_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An enqueue of some megabytes of fractions under a key held its replica's event loop for two seconds."""
    looks: list[str] = []

    def noting(word: str) -> str:
        looks.append(word)
        return word

    monkeypatch.setattr(values, "_amount", noting)
    comparable(to_value([0.1, 1.0, -0.0, 1e15, 2.5e-7, 1.5e300, 1e20, "1e16", {"1e17": [3]}, 1e16, -1.5e19]))
    assert looks == ["1e16", "-1.5e19"]


def test_a_number_of_many_digits_is_gone_through_once() -> None:
    """Were it looked at from each of its digits on, this would take an hour."""
    digits = "1" * 1_000_000
    assert comparable(Value(f"[0.{digits},1e16]")) == f"[0.{digits},10000000000000000]"


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("1", "1.0", True),
        ("1e16", "10000000000000000", True),
        ("[1.8e19,-9e18]", "[18000000000000000000,-9000000000000000000]", True),
        ("-1e19", "-10000000000000000000", False),
        ('["\\\\",1.0,"\\"1.0,"]', '["\\\\",1,"\\"1.0,"]', True),
        ('["\\\\",1.0,"\\"1.0,"]', '["\\\\",1,"\\"1,"]', False),
        ("-0.0", "0", True),
        ("1", "true", False),
        ("1", '"1"', False),
        ('{"a":[1.0,"1.0"]}', '{"a":[1,"1.0"]}', True),
        ('{"a":[1.0,"1.0"]}', '{"a":[1,"1"]}', False),
        ('{"1.0":0}', '{"1":0}', False),
        ("9007199254740993", "9007199254740992.0", False),
        ("9007199254740992", "9007199254740992.0", True),
        ("18446744073709551615", "18446744073709551616.0", False),
        # Texts that no API writes.
        (" 1 ", "1", True),
        (" 1 ", "2", False),
        (" 1 ", "true", False),
        ("1E15", "1000000000000000.0", True),
        ("1E15", "1000000000000000", True),
        ("-0", "0", True),
        ("1.50", "1.5", True),
        ('{"b":1,"a":2}', '{"a":2,"b":1}', True),
        ('{"b":1,"a":2}', '{"a":1,"b":2}', False),
        ('{"a":1,"a":2}', '{"a":2}', True),
        ('{"a":1,"a":2}', '{"a":1}', False),
        ('"\\u0061"', '"a"', True),
        ('"\\u0022"', '"\\""', True),
        ('{"a":[1,{"b":true}] }', '{"a":[1.0,{"b":true}]}', True),
        ('{"a":[1,{"b":true}] }', '{"a":[1.0,{"b":1}]}', False),
    ],
)
def test_equality_of_values(left: str, right: str, equal: bool) -> None:
    assert is_equal(Value(left), Value(right)) is equal


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (
            '[1.5,{"a":"[,"}]',
            ["1.5", "[1.5]", '[1.5,{"a":"["}]', '[1.5,"a","[,"]', "null", '[1.5,{"a":["[,"]}]'],
        ),
        ("1.5", ['"1.5"', "[1.5]"]),
    ],
)
def test_values_that_are_built_otherwise_are_told_apart_without_a_look_at_their_numbers(
    value: str, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compare-and-set of a few bytes cost a quarter of a second where the value had a megabyte with fractions."""
    looks: list[object] = []
    monkeypatch.setattr(values, "comparable", looks.append)
    assert not any(is_equal(Value(value), Value(other)) for other in others)
    assert looks == []


class _Unseen(list[Any]):
    """A list at whose items nobody may look."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("somebody looks at the items")


def test_what_has_too_many_parts_is_refused_before_anybody_looks_at_them() -> None:
    with pytest.raises(BadValue, match="over 1000 bytes"):
        to_value([_Unseen([1] * 500)], Limits(value_bytes_max=1000))


@pytest.mark.parametrize("value", [[1] * 499, [[]] * 333, ["", *[0] * 497], {"": [1] * 497}, [[[[]]]] * 142])
def test_a_value_of_many_small_parts_may_fill_the_limit(value: Any) -> None:
    text = to_value(value, Limits(value_bytes_max=1000))
    assert 995 <= len(text) <= 1000
    assert to_value(value, Limits(value_bytes_max=len(text))) == text
    with pytest.raises(BadValue, match="bytes of JSON"):
        to_value(value, Limits(value_bytes_max=len(text) - 1))


@pytest.mark.parametrize("value", [[1] * 500_000, [[1]] * 260_000])
def test_no_place_is_put_into_words_unless_it_is_told(value: list[Any]) -> None:
    text = to_value(value)
    assert len(text) > DEFAULTS.value_bytes_max * 0.95
    tracemalloc.start()
    try:
        assert check_value(text) is None
        decoded = from_value(text)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        assert to_value(decoded) == text
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 16 * len(text)


def test_a_place_is_told_through_arrays_and_objects() -> None:
    with pytest.raises(BadValue, match=r"the value at \.a\[1\]\.b\[2\] is nan"):
        to_value({"z": [[1]], "a": [[], {"b": [0, 1, math.nan]}]})


CALL = '["add",["x"]]'


def test_a_call_that_waits_weighs_its_arguments_and_a_part_of_the_work_on_the_state() -> None:
    work = work_bytes(CALL)
    assert work == len(CALL) + 2 * BRACKET_BYTES
    brought = len(CALL)
    assert waiting_weight(0, 0, "x" * 10_000) == 0
    assert waiting_weight(1, work, None) == ENTRY_BYTES + brought
    state = "[]" * 3200
    on_state = work_bytes(state) // WORK_OF_A_WAITING_BYTE
    assert waiting_weight(1, work, state) == ENTRY_BYTES + brought + on_state
    assert waiting_weight(5, 5 * work, state) - 5 * (ENTRY_BYTES + brought + on_state) in range(15)


def test_a_call_runs_on_what_those_before_it_bring() -> None:
    """A log of calls that fill an empty object took as long as one on a large state."""
    calls, brought = 1000, len('["add",["x"]]')
    base = calls * (ENTRY_BYTES + brought)
    grown = calls * brought // 2  # In the mean.
    assert (
        waiting_weight(calls, calls * work_bytes(CALL), None)
        == base + calls * grown // WORK_OF_A_WAITING_BYTE
    )


def test_calls_that_wait_are_no_more_work_than_a_look_may_run() -> None:
    """Whatever the state, and however it grows: four megabytes, as `work_bytes` counts them, or one call."""
    most = DEFAULTS.waiting_bytes_max(3)
    for state in ("", "x" * STATE_BYTES_MAX, "[]" * (STATE_BYTES_MAX // 2)):
        for text in (CALL, '["add",["' + "x" * 3000 + '"]]', '["add",[' + "[]," * 50 + "[]]]"):
            work = work_bytes(text)
            fitting = (n for n in range(1, 3000) if waiting_weight(n + 1, (n + 1) * work, state) > most)
            calls = next(fitting)
            brought = work - 2 * BRACKET_BYTES
            run = sum(work_bytes(state) + number * brought for number in range(calls))
            assert run <= most * WORK_OF_A_WAITING_BYTE


@pytest.mark.parametrize(("state", "fits"), [("", 699), ("x" * 250_000, 16)])
def test_of_small_calls_hundreds_wait_and_a_few_on_a_large_state(state: str, fits: int) -> None:
    """As docs/how-to/own-types.md tells."""
    work, most = work_bytes('["bump",[1]]'), DEFAULTS.waiting_bytes_max(3)
    assert waiting_weight(fits, fits * work, state) <= most
    assert waiting_weight(fits + 1, (fits + 1) * work, state) > most


@pytest.mark.parametrize("text", ["060a.0000.x", "", "[1", "\ud800", "[" * 100_000])
def test_what_is_no_json_equals_itself_alone(text: str) -> None:
    assert is_equal(Value(text), Value(text))
    assert not is_equal(Value(text), Value("1"))
    assert not is_equal(Value("1"), Value(text))


def test_long_texts_are_compared_as_they_stand() -> None:
    """To parse a megabyte for a compare-and-set of a few bytes took up to a tenth of a second."""
    long = Value("[" + "1," * PARSED_CHARS_MAX + "1]")
    assert is_equal(long, Value(long.replace("1]", "1.0]")))
    assert not is_equal(long, Value(f" {long}"))
    assert is_equal(Value("[1]"), Value(" [1]"))
