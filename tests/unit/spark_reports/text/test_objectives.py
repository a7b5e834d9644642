"""The sentences about objectives."""

from dataclasses import replace

import pytest

from quorate.spark_reports.model.objectives import AS_IT_WAS
from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.text.objectives import are_met, left, of_budget, sentences, spent, target, verdicts
from tests.unit.spark_reports.made_figures import Made
from tests.unit.spark_reports.made_objectives import judged, objective


def plain(text: str) -> str:
    return text.replace(NO_BREAK, " ")


def test_each_objective_of_the_choice_in_force_gets_a_sentence_and_each_type_one() -> None:
    told = [plain(each) for each in sentences(judged(Made().figures()))]
    assert told == [
        "SLO Enq 99.9 % missed: with enq-1, Enq was available 99.50 %; 500 % of the error budget of 1 failure is spent, overspent by 4 failures.",
        "SLO Deq 99 % met: with enq-1, Deq would have been available 99.50 %; 50 % of the error budget of 28.8 min is spent, 14.4 min left.",
        "For the queue, enq-2 and enq-3 meet every objective, of 4 looked at.",
    ]


def test_where_no_choice_meets_them_it_is_said() -> None:
    found = judged(Made().figures())
    found = replace(found, verdicts=tuple(replace(each, met=False) for each in found.verdicts))
    assert sentences(found)[-1] == "For the queue, no choice of the 4 looked at meets every objective."


def test_a_choice_whose_quorums_miss_each_other_is_not_named() -> None:
    found = judged(Made().figures())
    bad = tuple(replace(each, valid=each.choice != "enq-2") for each in found.verdicts)
    assert sentences(replace(found, verdicts=bad))[-1].startswith(
        "For the queue, enq-3 meets every objective"
    )


def test_whether_they_are_met_is_asked_of_the_choices_in_force() -> None:
    found = judged(Made().figures())
    assert not are_met(found)
    assert are_met(replace(found, verdicts=tuple(replace(each, present=False) for each in found.verdicts)))
    assert are_met(Made().figures()), "nothing was asked"


@pytest.mark.parametrize(
    ("bad", "said", "rest"),
    [
        (0, "0 %", "2.5 failures left"),
        (1, "40 %", "1.5 failures left"),
        (3, "120 %", "overspent by 0.5 failures"),
    ],
)
def test_parts_of_a_failure_are_said(bad: int, said: str, rest: str) -> None:
    row = objective("Enq", "0.99", 250, bad)
    assert (plain(spent(row)), left(row), plain(target(row))) == (said, rest, "Enq 99 %")


def test_shares_of_a_budget_are_told_more_closely_where_they_decide() -> None:
    shares = (0.0, 0.0012, 0.12, 0.964, 1.0, 1.004, 1.06, 24.39)
    assert [plain(of_budget(share)) for share in shares] == [
        "0 %",
        "0.12 %",
        "12 %",
        "96.4 %",
        "100 %",
        "100.4 %",
        "106 %",
        "2,439 %",
    ]


def test_the_page_says_of_each_choice_in_force_what_it_misses() -> None:
    found = judged(Made().figures())
    assert verdicts(found) == ["For the queue, enq-1, which was run, misses Enq."]
    (row, *_) = found.verdicts
    assumed = replace(found, verdicts=(replace(row, run_as=None, met=True, missed=()),))
    assert verdicts(assumed) == ["For the queue, enq-1, taken to be in force, meets every objective."]


def test_choices_that_were_in_force_one_after_the_other_are_judged_as_one() -> None:
    found = judged(Made().figures())
    first, *others = found.verdicts
    was = replace(first, choice=AS_IT_WAS, run_as=None)
    row = replace(found.objectives[0], choice=AS_IT_WAS, run_as=None, unit="seconds")
    rows = tuple(replace(each, present=False) for each in found.objectives)
    found = replace(found, verdicts=(was, replace(first, present=False), *others), objectives=(row, *rows))
    assert verdicts(found) == [
        "For the queue, as it was, with each choice while it was in force, Enq is missed."
    ]
    assert plain(sentences(found)[0]).startswith(
        "SLO Enq 99.9 % missed: as it was, Enq would have been available"
    )
    assert sentences(found)[-1] == "For the queue, enq-2 and enq-3 meet every objective, of 4 looked at."
    met = replace(found, verdicts=(replace(was, met=True, missed=()), *found.verdicts[1:]))
    assert verdicts(met)[0].endswith("every objective is met.")
