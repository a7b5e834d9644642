"""Types of one's own in a plan: which are known, and which calls are made of them."""

import pytest

from quorate.adts.library import Counter
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.cluster import parse
from quorate.api_specs.limits import Limits
from quorate.measurement.plan.own_calls import CALLS_MAX, calls_of, check_calls, own_types_of
from quorate.measurement.plan.plan import BadPlan, Plan
from quorate.measurement.plan.plan_check import parse_plan
from tests.unit.measurement.plan.test_plan import OWN, workload
from tests.unit.measurement.plans import plan_text

CLUSTER = """
name = "c"
[[replicas]]
id = "r1"
url = "http://127.0.0.1:8001"
[types]
visits = "shop:Visits"
"""


def test_types_of_a_running_cluster_are_those_of_its_document() -> None:
    def plan_of(type: str) -> Plan:
        calls = workload(type, "{ add = 1 }", more=f'object = "{type}/x"')
        return parse_plan(plan_text(cluster='[cluster]\ndocument = "cluster.toml"\n', workload=calls))

    assert own_types_of(plan_of("visits"), parse(CLUSTER)) == {"visits": "shop:Visits"}
    with pytest.raises(
        BadPlan, match=r"'seats' is not kept by replicas; use queue, register, .*, visits, or"
    ):
        own_types_of(plan_of("seats"), parse(CLUSTER))


def test_what_is_no_operation_of_the_class_is_told() -> None:
    plan = parse_plan(plan_text(OWN, workload=workload("seats", "{ add = 1, subtract = 1 }")))
    assert own_types_of(plan) == {"seats": "shop:Seats"}
    with pytest.raises(
        BadPlan, match=r"workloads 1, rates: Counter has no operation 'subtract'; use add, value"
    ):
        check_calls(plan, {"seats": PlainClass(Counter)})


class Odd:
    examples = {"large": (1, 2**70), "long": ("x" * 100,), "whole": (1.5,)}  # noqa: RUF012 - as users write it

    def keep(self, large: int, other: str) -> None:
        """Beyond 64 bits."""

    def note(self, long: str) -> None:
        """Too long under small limits."""

    def count(self, whole: int) -> None:
        """The example is none."""


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ("keep", "the examples of keep: .*64 bits"),
        ("note", "the examples of note: the value is over 50 bytes"),
        ("count", "the examples of count: the argument whole is 1.5, and its hint says int"),
    ],
)
def test_examples_that_no_replica_takes_are_told_before_the_run(operation: str, problem: str) -> None:
    plan = parse_plan(plan_text(OWN, workload=workload("seats", f"{{ {operation} = 1 }}")))
    with pytest.raises(BadPlan, match=f"workloads 1, rates: {problem}"):
        check_calls(plan, {"seats": PlainClass(Odd)}, Limits(value_bytes_max=50))


def test_calls_are_made_with_all_examples_in_turn_but_not_endlessly_many() -> None:
    class Wide:
        examples = {name: tuple(range(20)) for name in "abc"}  # noqa: RUF012 - as users write it

        def keep(self, a: int, b: int, c: int) -> None:
            """8,000 combinations."""

    assert [each.args for each in calls_of(PlainClass(Counter), "add")][:2] == [(1,), (2,)]
    calls = calls_of(PlainClass(Wide), "keep")
    assert (len(calls), calls[1].args) == (CALLS_MAX, (0, 0, 1))
