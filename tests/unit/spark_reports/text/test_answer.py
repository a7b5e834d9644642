"""The sentences that open a report are true for what was really run."""

from dataclasses import replace

import pytest

from quorate.spark_reports.model.figures import AgainstFigures, ClaimFigures, Figures, RecommendationFigures
from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.text.answer import answers, findings, time_scale
from quorate.spark_reports.text.method import how, words
from tests.unit.spark_reports.made_figures import Made, paired

MEASURED = Made().figures()
CALM = Made(failing=False).figures()
TRACE = Made(measured=False).figures()


def said(figures: Figures, about: str) -> str:
    """The finding of this name, with plain blanks."""
    return next(found.sentence for found in findings(figures) if found.about == about).replace(NO_BREAK, " ")


def recommending(figures: Figures, **changes: object) -> Figures:
    """Figures whose recommendation is changed."""
    row: RecommendationFigures = replace(figures.recommendations[0], **changes)  # type: ignore[arg-type]
    return replace(figures, recommendations=(row,))


def against(choice: str, kind: str, difference: float, width: float) -> AgainstFigures:
    return AgainstFigures(
        choice, kind, True, 0.5, difference, difference - width, difference + width, abs(difference) > width
    )


def answered(figures: Figures) -> str:
    (sentence,) = answers(figures)
    return sentence.replace(NO_BREAK, " ")


def test_a_choice_that_is_clearly_best_is_recommended_with_what_it_gains() -> None:
    others = (against("enq-1", "typed", 0.1, 0.01), against("enq-4", "read-write", 0.05, 0.02))
    sentence = answered(recommending(MEASURED, against=others))
    assert (
        "choose enq-2: it would have served 83.0 % of the mix as it was tried (Enq 50 % and Deq 50 %)"
        in sentence
    )
    assert (
        "5.0 points more than the best read/write choice, enq-4 (+5.00 points, 95 % interval +3.00 to +7.00)"
        in sentence
    )
    assert "it was run here, and answered 88.0 % of Enq and 78.0 % of Deq" in sentence
    assert "clearly" not in sentence


def test_a_choice_that_may_be_first_by_chance_is_not_recommended_as_if_it_were_sure() -> None:
    others = (against("enq-1", "typed", 0.1, 0.01), against("enq-4", "read-write", 0.01, 0.02))
    sentence = answered(recommending(MEASURED, against=others))
    assert "enq-2 comes first" in sentence
    assert "choose" not in sentence
    assert "enq-4 is not clearly behind it (+1.00 points, 95 % interval −1.00 to +3.00)" in sentence  # noqa: RUF001
    assert "more than the best read/write choice" not in sentence


def test_a_difference_without_an_interval_is_not_called_sure() -> None:
    other = AgainstFigures("enq-4", "read-write", False, 0.5, 0.2, None, None, certain=False)
    assert "enq-4 is not clearly behind it (+20.00 points; the trace is too short" in answered(
        recommending(MEASURED, against=(other,))
    )


def test_the_reader_is_told_at_once_where_little_of_the_time_is_known() -> None:
    """`Made` measures for 240 s; what is bridged over or cut off at an end is not worth a word."""
    window = MEASURED.window
    assert "Known only in part" not in {found.about for found in findings(MEASURED)}
    nearly = replace(MEASURED, window=replace(window, known_s=0.96 * 240))
    assert "Known only in part" not in {found.about for found in findings(nearly)}
    partly = replace(MEASURED, window=replace(window, known_s=60.0))
    assert findings(partly)[0].about == "Known only in part"
    assert "rests on 60 s, 25.0 % of the 4 min: in the rest" in said(partly, "Known only in part")


def test_equals_are_named() -> None:
    """Some as good as the recommended one, some that were lucky."""
    others = (against("enq-1", "typed", 0.1, 0.01),)
    independent = {"enq-2": 0.9, "enq-3": 0.9, "enq-4": 0.8}
    candidates = tuple(
        replace(row, served_independent=independent.get(row.choice, 0.0)) for row in MEASURED.candidates
    )
    figures = replace(MEASURED, candidates=candidates)
    assert "choose enq-2, or just as well enq-3:" in answered(
        recommending(figures, against=others, tied=("enq-3",))
    )
    weaker = ", rather than enq-4, which did as well here but would bear fewer failures:"
    assert f"choose enq-2, or just as well enq-3{weaker}" in answered(
        recommending(figures, against=others, tied=("enq-3", "enq-4"))
    )
    assert f"choose enq-2{weaker[1:]}" in answered(recommending(figures, against=others, tied=("enq-4",)))


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (1.0, "would have served all of"),
        (0.0, "no choice would have served anything"),
        (0.5, "served 50.0 % of"),
    ],
)
def test_where_all_are_alike_no_choice_is_recommended(served: float, text: str) -> None:
    figures = recommending(CALM, served=served)
    assert len(figures.recommendations[0].tied) == 3
    assert text in answered(figures)
    assert "choose" not in answered(figures)
    assert "comes first" not in answered(figures)


def test_a_choice_that_was_not_run_is_not_called_measured() -> None:
    assert "it was not run here, so this rests on the trace alone" in answered(
        recommending(MEASURED, run_as=None)
    )
    assert "no operation was measured, so this rests on the trace alone" in answered(TRACE)
    assert said(TRACE, "Typed against read/write quorums").startswith(
        "Not measured: the input holds no operations"
    )
    assert {found.about for found in findings(TRACE)} & {"Measured", "Predicted from joint failures"} == set()


def test_without_a_known_moment_or_a_choice_nothing_is_recommended() -> None:
    unknown = replace(MEASURED, window=replace(MEASURED.window, known_s=0.0))
    assert answers(unknown)[0].startswith("No choice can be recommended: at no time")
    assert answers(replace(MEASURED, recommendations=()))[0].startswith("No quorum choice was looked at")


def claimed(*rows: tuple[str, bool, float, float]) -> str:
    """The claim of one pair, from operation, blind, difference and half the width of its interval."""
    lines = [
        ClaimFigures(
            "queue", "typed", "rw", name, blind, gap, gap - width, gap + width, gap, certain=abs(gap) > width
        )
        for name, blind, gap, width in rows
    ]
    return said(replace(MEASURED, claim=tuple(lines)), "Typed against read/write quorums")


def test_the_claim_is_a_measured_line() -> None:
    sentence = claimed(("Enq", True, 0.1, 0.01), ("Deq", False, -0.2, 0.01))
    assert sentence.startswith(
        "As the lecture claims, typed quorums made Enq more available at the cost of Deq."
    )
    assert (
        "With typed instead of rw: Enq +10.00 points (95 % interval +9.00 to +11.00, +10.00 predicted)"
        in sentence
    )
    assert "Deq −20.00 points" in sentence  # noqa: RUF001


@pytest.mark.parametrize(
    ("enq", "deq", "text"),
    [
        ((0.1, 0.2), (-0.2, 0.1), "No clear difference: the interval for Enq"),
        ((0.0, 0.0), (-0.2, 0.1), "No clear difference: the interval for Enq"),
        ((-0.1, 0.01), (0.2, 0.1), "Against the lecture's claim, typed quorums made Enq less available"),
        ((0.1, 0.01), (-0.05, 0.1), "what Deq paid for it cannot be told from chance"),
        ((0.1, 0.01), (0.05, 0.01), "Deq did not even pay for it"),
    ],
)
def test_the_claim_is_not_said_to_hold_where_it_does_not(
    enq: tuple[float, float], deq: tuple[float, float], text: str
) -> None:
    sentence = claimed(("Enq", True, *enq), ("Deq", False, *deq))
    assert text in sentence
    assert "at the cost of" not in sentence


def test_the_claim_says_what_is_missing() -> None:
    assert "what it cost others was not measured" in claimed(("Enq", True, 0.1, 0.01))
    assert claimed().startswith("Not measured: the run holds no typed choice beside a read/write one")


def test_of_several_pairs_the_claim_counts_those_for_which_it_holds() -> None:
    assert "It holds for 2 of the 3 such pairs" in said(MEASURED, "Typed against read/write quorums")
    assert "It holds for none of the 3 such pairs" in said(CALM, "Typed against read/write quorums")


def test_predictions_are_held_against_the_intervals() -> None:
    assert said(MEASURED, "Predicted from joint failures").startswith("It agrees:")
    off = said(MEASURED, "Predicted as if independent")
    assert off.startswith(
        "For the recommended choice, taking failures for independent would be too optimistic: 99.40 % instead of 88.0 %"
    ), "of a choice that somebody would take, and as a ratio of downtimes"
    assert "20 times the downtime that it would promise" in off
    assert off.endswith("Visibly off for 8 of 8 measured availabilities, beyond their 95 % intervals.")
    assert "points" not in off


def with_row(number: int, **changes: object) -> Figures:
    """Figures in which one operation is changed."""
    rows = list(MEASURED.operations)
    rows[number] = replace(rows[number], **changes)  # type: ignore[arg-type]
    return replace(MEASURED, operations=tuple(rows))


def test_a_joint_prediction_that_is_off_is_said_to_be() -> None:
    figures = with_row(3, joint_agrees=False, predicted_joint=MEASURED.operations[3].measured + 0.1)
    sentence = said(figures, "Predicted from joint failures")
    assert (
        "interval of 7 of 8 measured availabilities, and off for Deq with enq-2: by 10.0 points" in sentence
    )
    assert "agrees" not in sentence


def test_a_joint_prediction_that_agrees_may_yet_be_off_stretch_by_stretch() -> None:
    sentence = said(with_row(0, joint_gap=paired(-0.03, 0.01)), "Predicted from joint failures")
    assert sentence.startswith("It agrees:")
    assert "stretch by stretch, 1 of 8 lies below it, by 3.0 points (Enq with enq-1)" in sentence
    assert "above" not in sentence
    assert "lies above it, by 3.0 points" in said(
        with_row(0, joint_gap=paired(0.03, 0.01)), "Predicted from joint failures"
    )


def test_independence_may_be_off_stretch_by_stretch_only() -> None:
    within = tuple(replace(row, independent_agrees=True) for row in MEASURED.operations)
    sentence = said(replace(MEASURED, operations=within), "Predicted as if independent")
    assert "Off for 8 of 8 measured availabilities, as it shows when both are held together" in sentence
    one_beyond = (MEASURED.operations[0], *within[1:])
    sentence = said(replace(MEASURED, operations=one_beyond), "Predicted as if independent")
    assert "Visibly off for 1 of 8" in sentence
    assert sentence.endswith("for 7 more.")


def test_independence_is_not_refuted_by_what_lies_within_the_intervals() -> None:
    assert "Not visibly off" in said(CALM, "Predicted as if independent")
    one = Made(replicas=1, choices=1).figures()
    assert "Predicted as if independent" not in {found.about for found in findings(one)}


def test_a_run_too_short_for_stretches_says_what_its_intervals_reckon_with() -> None:
    """By outage where that could be made; attempts for independent only where nothing else could."""
    too_short = replace(MEASURED, window=replace(MEASURED.window, blocks=None))
    sentence = said(too_short, "How sure")
    assert "A longer run has to confirm" in sentence
    assert "All intervals of shares reckon with outages instead" in sentence
    assert "independent" not in sentence
    first, *rest = too_short.operations
    mixed = replace(too_short, operations=(replace(first, by_outage=None), *rest))
    assert "7 intervals of shares reckon with outages" in said(mixed, "How sure")
    assert "1 interval of a share takes attempts for independent" in said(mixed, "How sure")
    alone = replace(too_short, operations=tuple(replace(row, by_outage=None) for row in (first, *rest)))
    assert "reckon with outages" not in said(alone, "How sure")
    assert "All intervals of shares take attempts for independent" in said(alone, "How sure")
    often = tuple(replace(row, trace=replace(row.trace, outages=6)) for row in too_short.operations)
    assert "Intervals of differences where a choice met 6 outages or more take attempts" in said(
        replace(too_short, operations=often), "How sure"
    )
    assert " Off for 8 of 8" in said(too_short, "Predicted as if independent")
    assert "How sure" not in {
        found.about for figures in (MEASURED, CALM, TRACE) for found in findings(figures)
    }


def test_no_failure_seen_is_not_called_proof() -> None:
    sentence = said(CALM, "Measured")
    assert "all 19,200 operations were answered" in sentence
    assert "no proof" in sentence
    assert "at least 2.8 nines" in sentence


def test_nothing_answered_and_all_alike() -> None:
    nothing = tuple(replace(row, measured=0.0, ok=0) for row in MEASURED.operations)
    assert (
        said(replace(MEASURED, operations=nothing), "Measured") == "None of 19,200 operations was answered."
    )
    assert "93.0 % were answered, alike" in said(
        replace(MEASURED, operations=MEASURED.operations[:1]), "Measured"
    )


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (2.13, "2.1 times as much"),
        (1.0, "about independently"),
        (0.5, "one after the other"),
        (None, "Too little changed"),
    ],
)
def test_how_far_replicas_fail_together(ratio: float | None, text: str) -> None:
    correlation = replace(MEASURED.correlation, variance_ratio=ratio)
    assert text in said(replace(MEASURED, correlation=correlation), "Failing together")


def test_replicas_that_never_failed_and_one_alone() -> None:
    assert "No replica was seen down" in said(CALM, "Failing together")
    assert "one replica only" in said(Made(replicas=1, choices=1).figures(), "Failing together")


def test_where_nothing_was_measured_the_predictions_are_compared() -> None:
    sentence = said(TRACE, "If failures were independent")
    assert sentence.startswith(
        "For the recommended choice, taking failures for independent would be too optimistic: 99.40 % instead of 88.0 % for "
        "Enq with enq-2, 20 times the downtime that it would promise."
    )


def test_the_recommended_choice_is_spoken_of_first_and_downtimes_are_compared_by_ratio() -> None:
    """A gap of 0.4 points that is five times the downtime weighs more than one of 2.5 points that is a tenth more."""
    few, many = TRACE.counterfactuals[:2]
    ours = replace(few, choice="enq-2", predicted_independent=0.999, predicted_joint=0.995)
    nobodys = replace(many, choice="enq-1", predicted_independent=0.75, predicted_joint=0.725)
    figures = replace(TRACE, counterfactuals=(nobodys, ours))
    sentence = said(figures, "If failures were independent")
    assert "too optimistic: 99.90 % instead of 99.50 %" in sentence
    assert "5 times the downtime that it would promise. For no other choice is the ratio larger." in sentence
    turned = replace(nobodys, predicted_independent=1.0)
    assert "The ratio is largest for 100 % instead of 72.5 %" in said(
        replace(figures, counterfactuals=(turned, ours)), "If failures were independent"
    )
    rather = replace(ours, predicted_independent=0.99)
    assert "too pessimistic: 99.0 % instead of 99.50 %" in said(
        replace(figures, counterfactuals=(nobodys, rather)), "If failures were independent"
    )


def test_predictions_that_agree_are_said_to() -> None:
    calm = Made(measured=False, failing=False).figures()
    assert "Both predictions say the same" in said(calm, "If failures were independent")


def test_the_scale_of_time_is_said_where_there_is_one() -> None:
    text = time_scale(replace(MEASURED.window, time_scale=2400.0))
    assert text == f"One measured minute stands for 40{NO_BREAK}h of the plan."
    assert time_scale(TRACE.window) is None
    assert not [paragraph for paragraph in how(TRACE) if "plan" in paragraph]


def test_intervals_are_explained_by_what_they_could_be_made_from() -> None:
    def explained(figures: Figures) -> str:
        return next(word.sentence for word in words(figures) if word.about == "Interval (95 %)")

    assert "stays together. An interval by outage" in explained(MEASURED)
    assert "true uncertainty is larger than shown" in explained(CALM)
    alone = replace(MEASURED.operations[0], block_bootstrap=None, by_outage=None)
    one_without = replace(MEASURED, operations=(alone, *MEASURED.operations[1:]))
    assert "A block bootstrap (for 7 of 8 operations) draws" in explained(one_without)
    assert "For 1 of 8 operations, only the first can be made: the run has too few" in explained(one_without)
    assert "draws 40 stretches" in explained(TRACE)
    short = replace(TRACE, window=replace(TRACE.window, blocks=None))
    assert "draws" not in explained(short)
    assert "An interval by outage counts" in explained(short)
    rows = tuple(replace(row, low=None, high=None, by_outage=None) for row in TRACE.counterfactuals)
    assert explained(replace(short, counterfactuals=rows)).startswith("No intervals are given")


def test_a_source_is_named_with_what_was_read() -> None:
    assert how(MEASURED)[0] == (
        "This report was made from a measured run (run.json, operations.jsonl.gz and replicas.csv)."
    )
    assert how(TRACE)[0] == "This report was made from a saved answer of a Prometheus range query (up.json)."
    assert how(TRACE)[1].startswith("No operation was recorded")
