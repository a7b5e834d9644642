"""Figures of regimes, worked out by hand, and against a look at every microsecond."""

from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.catalogue import known_types
from quorate.spark_reports.figures import derive_choices
from quorate.spark_reports.figures.derive_regimes import Since, figures_of_regimes, outside, regimes_of
from quorate.spark_reports.model.aggregates import Aggregates, Span
from quorate.spark_reports.model.confidence import Repairs
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.figures import Figures, RegimeFigures
from quorate.spark_reports.model.models import US_PER_S, Model
from quorate.spark_reports.model.objectives import Present
from quorate.spark_reports.model.questions import Questions, ask
from quorate.spark_reports.model.run_document import Run
from quorate.spark_reports.reference.trace import Input, aggregate_trace, enough_of, up_sets_of
from quorate.spark_reports.report import Options, make_report
from tests.unit.spark_reports import measured_run
from tests.unit.spark_reports.input.test_foreign import answer, series
from tests.unit.spark_reports.reference.test_trace import LAST_US, PIECES, Said, laid_out

ONE, TWO, THREE = "Enq (0, 1), Deq (3, 1)", "Enq (0, 2), Deq (2, 2)", "Enq (0, 3), Deq (1, 3)"
STEPS = ((0, 100, "abc"), (100, 200, "ab"), (200, 300, "abc"), (300, 500, "a"), (600, 1000, "abc"))
"""c is down for 100 s, later b and c for 200 s, and then nothing is known for 100 s."""


def report(folder: Path, present: Present, *changes: Since, **options: Any) -> Figures:
    samples = {
        name: [
            (float(time_s), str(int(name in up)))
            for start, end, up in STEPS
            for time_s in range(start, end, 10)
        ]
        for name in "abc"
    }
    trace = answer(folder, *(series(name, *own) for name, own in samples.items()))
    wanted = {"adt": "queue", "mix": {"Enq": 1.0, "Deq": 1.0}, "present": present, "changes": changes}
    return make_report(trace, folder / "out", Options(engine="python", **wanted | options)).figures


def since(seconds: int, choice: str) -> Since:
    return Since(seconds * 1_000_000, choice)


def row(figures: Figures, regime: int, operation: str) -> RegimeFigures:
    return next(each for each in figures.regimes if (each.regime, each.operation) == (regime, operation))


def test_each_regime_has_the_figures_of_its_own_choice(tmp_path: Path) -> None:
    """Under ONE a Deq needs all three. From 400 on it needs two, and b and c are down for another 100 s."""
    found = report(tmp_path, ONE, since(400, TWO))
    first, second = row(found, 1, "Deq"), row(found, 2, "Deq")
    assert (first.choice, first.from_s, first.to_s, first.known_s) == (ONE, 0, 400, 400)
    assert (first.available, first.downtime_s, first.outages) == (0.5, 200, 2)
    assert (first.longest_s, first.mttr_s) == (100, 100), "the outage that began at 300 is cut at 400"
    assert (second.choice, second.from_s, second.to_s, second.known_s) == (TWO, 400, 1000, 500)
    assert (second.available, second.outages, second.longest_s) == (0.8, 1, 100)
    assert (row(found, 1, "Enq").available, row(found, 1, "Enq").mttr_s) == (1, None)
    assert {each.recommended for each in found.regimes} == {found.recommendations[0].choice}


def test_as_it_was_adds_up_the_regimes_beside_the_recommended_choice_and_the_rule(tmp_path: Path) -> None:
    found = report(tmp_path, ONE, since(400, TWO))
    mix, enq, deq = found.as_it_was
    assert (mix.operation, enq.operation, deq.operation) == (None, "Enq", "Deq")
    assert (enq.available, deq.available) == (800 / 900, 600 / 900)
    assert mix.available == pytest.approx(700 / 900)
    best = found.recommendations[0]
    assert (mix.recommended, mix.recommended_available) == (best.choice, best.served)
    alone = {each.operation: each for each in found.counterfactuals if each.choice == best.choice}
    for each in (enq, deq):
        assert each.recommended_available == alone[str(each.operation)].predicted_joint


def test_the_standing_rule_stands_beside_it(tmp_path: Path) -> None:
    """Where the figures have one: of `examples/up.json` it serves more than any choice alone."""
    up = Path(__file__).parents[4] / "examples" / "up.json"
    majorities = "Enq (0, 3), Deq (3, 3)"
    options = Options(
        engine="python",
        adt="queue",
        mix={"Enq": 1.0, "Deq": 1.0},
        present=majorities,
        changes=[Since(1_762_300_800_000_000, "Enq (0, 1), Deq (5, 1)")],
    )
    found = make_report(up, tmp_path / "out", options).figures
    (rule,) = found.adaptive
    classes = {each.event_class: each.adaptive for each in rule.classes}
    assert [each.adaptive_available for each in found.as_it_was] == [
        rule.served,
        classes["Enq/Ok"],
        classes["Deq/Ok"],
    ]
    assert rule.served > found.as_it_was[0].recommended_available > found.as_it_was[0].available


def test_one_regime_all_along_has_the_figures_of_its_choice(tmp_path: Path) -> None:
    """A change before the data begins says what was in force in all of it."""
    found = report(tmp_path, ONE, since(0, TWO))
    alone = {each.operation: each for each in found.counterfactuals if each.choice == TWO}
    assert {each.regime for each in found.regimes} == {1}
    for each in found.regimes:
        other = alone[each.operation]
        assert (each.choice, each.available) == (TWO, other.predicted_joint)
        assert (each.outages, each.downtime_s) == (other.trace.outages, other.trace.total_s)
        assert (each.longest_s, each.mttr_s) == (other.trace.longest_s, other.trace.mean_s)


def test_a_rule_of_a_cluster_has_the_votes_of_its_time(tmp_path: Path) -> None:
    """Until 400 a alone has most of five votes: while only a is up there is a majority. From then on each has one."""
    once = Since(0, {}, {"a": 3, "b": 1, "c": 1})
    later = Since(400_000_000, {"Enq/Ok": (0, 1)}, {"a": 1, "b": 1, "c": 1})
    found = report(tmp_path, {}, once, later)
    first, second = row(found, 1, "Deq"), row(found, 2, "Deq")
    assert (first.choice, first.available) == ("Enq (0, 3), Deq (3, 3) with votes a=3, b=1, c=1", 1)
    assert (second.available, second.downtime_s) == (0.8, 100)
    assert second.choice == ONE, "it is the one that was looked at"
    assert row(found, 2, "Enq").available == 1
    alike = report(tmp_path, {}, Since(0, {}, {"a": 1, "b": 1, "c": 1}), later)
    assert row(alike, 1, "Deq").choice == TWO
    impossible = report(tmp_path, {}, once, Since(400_000_000, {"Enq/Ok": (0, 9)}, {"a": 1, "b": 1, "c": 1}))
    assert (impossible.regimes, impossible.as_it_was) == ((), ())


def test_the_choice_in_force_is_the_one_at_the_end(tmp_path: Path) -> None:
    found = report(tmp_path, ONE, since(400, TWO), since(700, THREE), since(1000, ONE))
    assert {each.choice for each in found.summary if each.present} == {THREE}
    assert [each.choice for each in found.regimes if each.operation == "Enq"] == [ONE, TWO, THREE]


def test_objectives_are_judged_as_it_was(tmp_path: Path) -> None:
    """A Deq lacked replicas for 200 s under ONE, and for 100 s under TWO, which would have met the objective alone."""
    slo = {"Deq": Fraction(7, 10), "Enq/Ok": Fraction(88, 100)}
    found = report(tmp_path, ONE, since(400, TWO), slo=slo)
    deq, enq = (each for each in found.objectives if each.present)
    assert (deq.objective, deq.choice, deq.run_as, deq.unit) == ("Deq", "as it was", None, "seconds")
    assert (deq.total, deq.spent, deq.availability, deq.met) == (900, 300, 600 / 900, False)
    assert [(day.total, day.spent) for day in deq.days] == [(900, 300)]
    assert (enq.spent, enq.met) == (100, True)
    assert [(each.choice, each.missed) for each in found.verdicts if each.present] == [
        ("as it was", ("Deq",))
    ]
    assert {each.choice: each.met for each in found.verdicts}[TWO] is False, "Enq would have lacked 200 s"
    alone = report(tmp_path, ONE, since(0, TWO), slo=slo)
    assert {each.choice for each in alone.verdicts if each.present} == {TWO}


def test_a_regime_of_which_nothing_is_known_has_no_share(tmp_path: Path) -> None:
    unknown = row(report(tmp_path, ONE, since(520, TWO), since(580, THREE)), 2, "Deq")
    assert (unknown.known_s, unknown.available, unknown.recommended_available) == (0, None, None)
    assert (unknown.downtime_s, unknown.outages) == (0, 0)


def test_without_changes_there_are_no_regimes(tmp_path: Path) -> None:
    found = report(tmp_path, ONE)
    assert (found.regimes, found.as_it_was) == ((), ())


@pytest.mark.parametrize(
    ("present", "changes", "told"),
    [
        (
            None,
            (since(400, TWO),),
            "--since 400 s says what was in force from then on: name the choice before it with --present",
        ),
        (
            ONE,
            (since(400, TWO), since(300, ONE)),
            "--since 300 s comes after --since 400 s: give them in the order of time, each moment once",
        ),
        (ONE, (since(400, TWO), since(400, ONE)), "--since 400 s comes after --since 400 s: .*"),
        (
            ONE,
            (since(400, "Enq"),),
            r"--since 400 s names 'Enq', which was not looked at; there are Enq \(0, 1\), Deq \(3, 1\); .*",
        ),
        ("Enq", (since(400, TWO),), "--present names 'Enq', which was not looked at; .*"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, present: str | None, changes: tuple[Since, ...], told: str
) -> None:
    with pytest.raises(ReportError, match=f"^{told}$"):
        report(tmp_path, present, *changes)


def test_a_measured_run_says_itself_what_was_in_force(tmp_path: Path) -> None:
    run = measured_run.write_run(tmp_path / "run", operations=10)
    with pytest.raises(ReportError, match=r"that is what run\.json says of each object: leave it out"):
        make_report(run, tmp_path / "out", Options(engine="python", present="enq-1", changes=[since(1, TWO)]))


def test_a_change_to_the_same_choice_is_none_and_one_after_the_data_is_told() -> None:
    span, changes = Span(10, 20), [Since(12, ONE), Since(15, TWO), Since(20, ONE)]
    assert [(each.start_us, each.end_us, each.present) for each in regimes_of(span, ONE, changes)] == [
        (10, 15, ONE),
        (15, 20, TWO),
    ]
    assert outside(span, changes) == [
        "The choice in force from 2e-05 s on is not in this report: the data ends at 2e-05 s."
    ]
    assert outside(span, changes[:2]) == []


VOTES = {"r1": 1, "r2": 1, "r3": 1}
RUN = Run(votes=VOTES, front_ends=("c1", "c2", "c3"))


class Seen:
    """What three front ends could reach, one of them over a link to r1, in each microsecond, and what the reports make of it."""

    def __init__(self, pieces: list[list[tuple[int, int | None]]]) -> None:
        *own, (links, self.way) = [
            laid_out(*names, each)
            for names, each in zip((("", "r1"), ("", "r2"), ("", "r3"), ("c1", "r1")), pieces, strict=True)
        ]
        self.said = [said for _, said in own]
        intervals = [each for laid, _ in own for each in laid]
        found = Input(RUN, Span(0, LAST_US), (), intervals, links, (), {}, ())
        up_sets = up_sets_of(found)
        self.questions = ask((), {"queue": ("Enq", "Deq")}, VOTES, set(), {}, known_types())
        enough = enough_of(up_sets, self.questions, RUN)
        self.aggregates = aggregate_trace(found, up_sets, self.questions, enough)
        self.members = RUN.members(found.linked)
        self.model = modelled(self.aggregates, self.questions, self.members)

    def live(self, view: str) -> list[int | None]:
        """How many replicas the view showed up in each microsecond; None where that is not known."""
        told = [self._told(view, time_us) for time_us in range(LAST_US)]
        return [None if None in each else sum(each) for each in told]  # type: ignore[arg-type]

    def _told(self, view: str, time_us: int) -> Said:
        first, *others = [said[time_us] for said in self.said]
        if view:
            way = self.way[time_us]
            first = None if first is None or way is None else first and way
        return [first, *others]


def modelled(found: Aggregates, questions: Questions, members: dict[str, int]) -> Model:
    counts = {each.system: each.periods for each in found.outages}
    outages = {system: counts.get(number, 0) for number, system in enumerate(questions.systems)}
    return Model(VOTES, members, found.up_sets, None, Repairs(0, 0.0), outages)


@given(
    st.lists(PIECES, min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(0, LAST_US + 3), st.sampled_from([ONE, TWO, THREE])), max_size=4),
)
def test_every_microsecond_counts_for_the_choice_that_was_in_force(
    pieces: list[list[tuple[int, int | None]]], changes: list[tuple[int, str]]
) -> None:
    seen = Seen(pieces)
    if not seen.model.total_us:
        return
    ordered = [Since(*each) for each in sorted(dict(changes).items())]
    regimes = regimes_of(Span(0, LAST_US), ONE, ordered)
    choices = derive_choices.answer(seen.aggregates, RUN, seen.questions, seen.model, {})
    rows, wholes = figures_of_regimes(
        seen.aggregates, seen.questions, seen.model, regimes, choices.recommendations, ()
    )
    in_force = [
        max((each for each in ordered if each.from_us <= time_us), default=Since(-1, ONE)).present
        for time_us in range(LAST_US)
    ]
    changed = [time_us for time_us in range(1, LAST_US) if in_force[time_us] != in_force[time_us - 1]]
    assert [each.from_s * US_PER_S for each in rows if each.operation == "Enq"] == pytest.approx(
        [0, *changed]
    )
    for operation in ("Enq", "Deq"):
        own = [each for each in rows if each.operation == operation]
        for each in own:
            at = range(round(each.from_s * US_PER_S), round(each.to_s * US_PER_S))
            assert {in_force[time_us] for time_us in at} == {each.choice}
            assert_counted(seen, each, at)
        whole = next(each for each in wholes if each.operation == operation)
        known_s = sum(each.known_s for each in own)
        assert whole.available == pytest.approx(1 - sum(each.downtime_s for each in own) / known_s)


def assert_counted(seen: Seen, figures: RegimeFigures, at: range) -> None:
    """Count the microseconds of a regime one by one."""
    needed = {
        choice.name: choice.normal_class(figures.operation).needed_votes or 0
        for choice in seen.questions.choices
    }[figures.choice]
    lives = {view: seen.live(view) for view in seen.members}
    told = [(live[time_us], seen.members[view]) for view, live in lives.items() for time_us in at]
    known = sum(count for live, count in told if live is not None)
    down = sum(count for live, count in told if live is not None and live < needed)
    front_ends = sum(seen.members.values())
    assert figures.known_s * US_PER_S == pytest.approx(known / front_ends)
    assert figures.downtime_s * US_PER_S == pytest.approx(down / front_ends)
    assert figures.available == (pytest.approx(1 - down / known) if known else None)
    somebody = [
        any(live is not None and live < needed for live in (own[time_us] for own in lives.values()))
        for time_us in at
    ]
    lengths = [len(list(run)) for is_down, run in groupby(somebody) if is_down]
    assert figures.outages == len(lengths)
    assert figures.longest_s * US_PER_S == pytest.approx(max(lengths, default=0))
