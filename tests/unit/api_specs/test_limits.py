"""Limits: their relations hold or are named; docs/reference/limits.md says what the module says."""

import math
from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.api_specs.limits import DEFAULTS, KEYED_ENTRIES_MAX, Limits
from tests.unit.api_specs.limits_page import rendered

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "limits.md"


@pytest.mark.parametrize("name", Limits.__struct_fields__)
def test_every_limit_is_above_zero_and_finite(name: str) -> None:
    for wrong in (0, math.inf, math.nan):
        assert Limits(**{name: wrong}).problem() == "every limit must be above zero, and finite"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("good", "bad", "named"),
    [
        ({"value_bytes_max": DEFAULTS.body_bytes_max // 2 - 1, "page_bytes_max": 1}, {"value_bytes_max": DEFAULTS.body_bytes_max // 2 + 1},
         "value_bytes_max must be at most half of body_bytes_max"),
        ({"page_bytes_max": 3 << 20}, {"page_bytes_max": (3 << 20) + 1},
         "page_bytes_max and value_bytes_max together must be at most half of body_bytes_max"),
        ({"body_bytes_max": 124 << 20}, {"body_bytes_max": (124 << 20) + 1},
         "body_bytes_max must be at most 130023424"),
        ({"batch_items_max": KEYED_ENTRIES_MAX}, {"batch_items_max": KEYED_ENTRIES_MAX + 1},
         "batch_items_max must be at most 2000"),
        ({"deadline_s_max": 29.9}, {"deadline_s_max": 30.0}, "deadline_s_max must be below retry_window_s"),
        ({"wait_s_max": 25.0}, {"wait_s_max": 25.1}, "wait_s_max must be at most deadline_s_max"),
        ({"consumed_lag_s": 30.0}, {"consumed_lag_s": 30.1}, "consumed_lag_s must be at most retry_window_s"),
    ],
)  # fmt: skip
def test_a_relation_holds_up_to_its_edge(good: dict[str, float], bad: dict[str, float], named: str) -> None:
    assert replace(DEFAULTS, **good).problem() is None
    assert (replace(DEFAULTS, **bad).problem() or "").startswith(named)


def test_the_page_says_what_the_module_says() -> None:
    assert PAGE.read_text() == rendered(), (
        "write it with: python -m tests.unit.api_specs.limits_page > docs/reference/limits.md"
    )
