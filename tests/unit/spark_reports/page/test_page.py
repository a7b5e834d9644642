"""The page as text: whole, escaped, loading nothing, and with every fact of a chart in a table too."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from quorate.spark_reports.model.aggregates import Rejected
from quorate.spark_reports.model.figures import Figures, SurpriseFigures
from quorate.spark_reports.model.phrases import NO_BREAK, NO_VALUE
from quorate.spark_reports.page import tables_regimes
from quorate.spark_reports.page.page import render
from quorate.spark_reports.page.short_names import NAME_CHARS_MAX, short_names
from quorate.spark_reports.page.tables_choices import answer, summary
from quorate.spark_reports.page.tables_run import outages, surprises
from tests.unit.spark_reports.made_figures import Made
from tests.unit.spark_reports.made_objectives import judged
from tests.unit.spark_reports.text.test_regimes import changing

VERSIONS = {"quorate": "1.2.3", "python": "3.11"}
PLACE = "out/figures.json"
EVIL = "<script>alert('x')</script>\"><img src=//evil/x onerror=alert(1)>"


def renamed(figures: Figures, name: str) -> Figures:
    """Give figures in which the first choice, the first replica and a rejected row carry this name."""
    choice, replica = figures.candidates[0].choice, figures.replicas[0].replica

    def swap(row: Any) -> Any:
        changes = {}
        for key in ("choice", "other", "typed", "read_write", "replica", "run_as", "dominated_by"):
            if getattr(row, key, None) in {choice, replica} and getattr(row, key) is not None:
                changes[key] = name
        return replace(row, **changes) if changes else row

    tables = "replicas operations classes comparisons claim candidates counterfactuals recommendations prober timeline downtime"
    changes: dict[str, Any] = {
        table: tuple(swap(row) for row in getattr(figures, table)) for table in tables.split()
    }
    latencies = [row._replace(choice=name) if row.choice == choice else row for row in figures.latencies]
    changes |= {"latencies": tuple(latencies), "rejected": (Rejected(name, name, 1, name),)}
    return replace(figures, **changes)


KINDS: dict[str, Figures] = {
    "measured": Made().figures(),
    "calm": Made(failing=False).figures(),
    "trace": Made(measured=False).figures(),
    "many": Made(replicas=9, choices=20, name="a-name-{}-" + "of-a-choice-that-goes-on" * 4).figures(),
    "one": Made(replicas=1, choices=1).figures(),
    "evil": renamed(Made().figures(), EVIL),
    "objectives": judged(Made(replicas=7).figures()),
    "regimes": changing(Made(measured=False).figures(), "enq-1", "enq-3"),
    "unanswered": replace(Made().figures(), latencies=()),
    "nothing-known": replace(
        Made(measured=False).figures(),
        candidates=(),
        counterfactuals=(),
        recommendations=(),
        live_votes=(),
        window=replace(Made().figures().window, known_s=0.0, start_s=0.0),
    ),
}

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """What a page holds; fails on a tag that is closed out of order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.named_by: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.columns: list[int] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attrs)
        assert not [name for name in values if name.startswith("on")], "no attribute runs a script"
        self.ids += [values["id"] or ""] if "id" in values else []
        self.named_by += (values.get("aria-labelledby") or "").split()
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "tr":
            self.columns.append(0)
        elif tag in {"td", "th"}:
            self.columns[-1] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(figures: Figures) -> Page:
    html = render(figures, VERSIONS, parquet=True, place=PLACE)
    assert not re.search(r"https?:|@import|url\(|<script|<link|<iframe", html), (
        "the page must not load anything"
    )
    return Page(html)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole(kind: str) -> None:
    read = page(KINDS[kind])
    assert all(link.startswith("#") and link[1:] in read.ids for link in read.links)
    assert [name for name, times in Counter(read.ids).items() if times > 1] == []
    assert set(read.named_by) <= set(read.ids)
    assert read.tags["main"] == read.tags["h1"] == read.tags["header"] == 1
    deeper = [low for high, low in zip(read.headings, read.headings[1:], strict=False) if low > high + 1]
    assert deeper == [], "no level of headings is left out"
    assert read.tags["table"] == read.tags["caption"]
    # Each chart is drawn twice, and has a table.
    assert read.tags["desc"] == 2 * read.tags["figure"] > 0
    assert read.tags["table"] >= read.tags["figure"]


def test_each_kind_of_run_has_its_charts() -> None:
    figures = {kind: page(made).tags["figure"] for kind, made in KINDS.items()}
    assert figures == {
        "measured": 5,
        "calm": 5,
        "trace": 3,
        "many": 5,
        "one": 5,
        "evil": 5,
        "objectives": 5,
        "regimes": 3,
        "unanswered": 4,
        "nothing-known": 1,
    }


def test_the_verdict_comes_before_tables_and_prose_last() -> None:
    for kind in ("measured", "objectives", "trace"):
        html = render(KINDS[kind], VERSIONS, parquet=True, place=PLACE)
        verdict, table, answer, findings, chart = (
            html.index(part)
            for part in ('class="card verdict"', "<table", 'class="answer"', 'class="findings"', "<figure")
        )
        assert verdict < table < answer < findings < chart
    unknown = render(KINDS["nothing-known"], VERSIONS, parquet=True, place=PLACE)
    assert "verdict" not in unknown[unknown.index("<body") :]
    assert "No choice can be recommended" in unknown


def test_the_head_names_the_input_and_its_kind() -> None:
    head = "".join(page(KINDS["trace"]).text)
    assert "up.json: a saved answer of a Prometheus range query. 5 replicas" in head
    assert "week: a measured run. " in "".join(page(KINDS["measured"]).text)


def test_rows_of_zeros_are_one_sentence() -> None:
    made = KINDS["measured"]
    assert outages(made).note == ""
    none = replace(made.operations[0].trace, outages=0, total_s=0.0, longest_s=0.0, mean_s=None)
    first, *rest = (
        replace(row, trace=none, seen=none, surprises=SurpriseFigures(0, 0, 0, 0, 0, 0))
        for row in made.operations
    )
    one = replace(made, operations=(made.operations[0], *rest))
    table = outages(one)
    assert (len(table.rows), table.note) == (1, "7 other operations met no outage.")
    assert (len(surprises(one).rows), surprises(one).note) == (1, "7 other operations had no such attempt.")
    assert table.note in render(one, VERSIONS, parquet=True, place=PLACE)
    assert "No operation met an outage." in render(
        replace(made, operations=(first, *rest)), VERSIONS, parquet=True, place=PLACE
    )


def test_operations_of_which_a_choice_has_the_same_to_say_share_a_row_of_the_card() -> None:
    made = KINDS["objectives"]
    assert [row[0].text for row in summary(made).rows] == ["Enq and Deq", "Enq and Deq"]
    apart = replace(made, summary=(replace(made.summary[0], available=0.5), *made.summary[1:]))
    assert sorted(row[0].text for row in summary(apart).rows) == ["Deq", "Enq", "Enq and Deq"]


def test_names_are_escaped_wherever_they_stand() -> None:
    html = render(KINDS["evil"], VERSIONS, parquet=True, place=PLACE)
    assert "<script" not in html
    assert "<img" not in html
    assert "onerror=alert(1)>" not in html
    read = "".join(page(KINDS["evil"]).text)
    # In tables and sentences in full or cut in its middle; in labels of charts cut shorter.
    assert read.count("<script>alert('x')</script>") > 20


def test_long_names_are_cut_and_given_in_full_once() -> None:
    made = KINDS["many"]
    full = made.candidates[0].choice
    short = short_names(made)[full]
    assert len(short) <= NAME_CHARS_MAX < len(full)
    read = "".join(page(made).text)
    assert read.count(full) == 1
    assert read.count(short) > 10


def test_long_names_that_would_be_cut_alike_stay_apart() -> None:
    names = ["x" * 50 + middle + "y" * 50 for middle in "abc"]
    rows = [replace(KINDS["measured"].candidates[0], choice=name) for name in names]
    short = short_names(replace(KINDS["measured"], candidates=tuple(rows)))
    assert len(set(short.values())) == 3
    assert all(len(name) <= NAME_CHARS_MAX for name in short.values())


def test_a_table_has_as_many_cells_in_each_row_as_columns() -> None:
    html = render(KINDS["measured"], VERSIONS, parquet=True, place=PLACE)
    tables = re.findall(r"<table>.*?</table>", html, re.DOTALL)
    assert len(tables) > 15
    for table in tables:
        assert len(set(Page(table).columns)) == 1


def test_the_numbers_of_the_charts_stand_in_tables() -> None:
    made = KINDS["measured"]
    html = render(made, VERSIONS, parquet=True, place=PLACE)
    tables = "".join(Page("".join(re.findall(r"<table>.*?</table>", html, re.DOTALL))).text).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "93.0 % 91.9 % to 94.0 %" in tables, "availability with its interval"
    assert "99.65 % outside the interval" in tables, "the independent prediction"
    for row in made.timeline:
        assert f"{sum(row.failed[:24]):,} of {sum(row.attempts[:24]):,}" in tables, (
            "the timeline in stretches"
        )
    assert "2.1 ms" in tables, "latency"


def test_long_tables_are_folded() -> None:
    def folded(figures: Figures) -> int:
        return render(figures, VERSIONS, parquet=False, place=PLACE).count('class="big"')

    assert folded(KINDS["measured"]) == 0
    assert folded(KINDS["many"]) >= 5


def test_what_was_not_written_is_not_promised() -> None:
    assert "parquet" in render(KINDS["measured"], VERSIONS, parquet=True, place=PLACE)
    assert "parquet" not in render(KINDS["measured"], VERSIONS, parquet=False, place=PLACE)


def test_the_plan_and_the_versions_are_on_the_page() -> None:
    read = " ".join(page(KINDS["measured"]).text)
    assert str(KINDS["measured"].source.plan) in read
    assert "1.2.3" in read
    assert "two cores" in read
    assert "The plan" not in " ".join(page(KINDS["trace"]).text)


def test_a_trace_that_counts_from_zero_has_no_date() -> None:
    assert "1970" not in " ".join(page(KINDS["nothing-known"]).text)
    assert "from 2025-10-09 08:53:20 UTC on" in " ".join(page(KINDS["measured"]).text)


def test_rejected_rows_are_said_at_the_top_and_shown_below() -> None:
    read = " ".join(page(KINDS["measured"]).text)
    assert "3 bad rows were kept aside" in read
    assert "start lies after the window" in read
    clean = replace(KINDS["measured"], rejected=())
    assert "kept aside: see" not in " ".join(page(clean).text)


def test_a_page_stays_small() -> None:
    assert len(render(KINDS["measured"], VERSIONS, parquet=True, place=PLACE)) < 250_000
    assert len(render(KINDS["many"], VERSIONS, parquet=True, place=PLACE)) < 1_500_000


def test_the_answer_tells_the_quorums_behind_a_name_and_recommends_none_of_equals() -> None:
    figures = KINDS["measured"]
    rows = tuple(replace(row, initial="0", final="2", needed_votes=2) for row in figures.counterfactuals)
    figures = replace(figures, counterfactuals=rows)
    (best,) = figures.recommendations
    notes = {row[0].text: row[0].note for row in answer(figures, "queue").rows}
    quorums = f"Enq (0,{NO_BREAK}2), Deq (0,{NO_BREAK}2); typed"
    assert notes[best.choice] == f"{quorums}, recommended"
    others = tuple(row.choice for row in figures.candidates if row.choice != best.choice)
    alike = replace(figures, recommendations=(replace(best, tied=others),))
    assert {row[0].note for row in answer(alike, "queue").rows} == {
        quorums,
        quorums.replace("typed", "read/write"),
    }
    assert "recommended choice<" not in render(alike, VERSIONS, parquet=True, place=PLACE)


def test_what_lessens_a_run_stands_under_the_answer() -> None:
    """As the run says it, escaped; of very many notes the first."""
    figures = KINDS["measured"]
    noted = replace(
        figures, source=replace(figures.source, notes=("late", *(f"note <{i}>" for i in range(9))))
    )
    html = render(noted, VERSIONS, parquet=True, place=PLACE)
    assert '<p class="warning">late</p>' in html
    assert "note &lt;3&gt;" in html
    assert "note &lt;4&gt;" not in html
    assert "5 more of such notes" in html
    assert html.index(">late<") < html.index("<table")


def test_the_page_ends_with_the_commands_that_apply_the_advice() -> None:
    command = "quorate choice set queue/NAME --advice out/figures.json"
    ending = f"<pre>{command}\n{command} --standing</pre>\n</div></details>\n</main>"
    for kind in ("measured", "trace"):
        html = render(KINDS[kind], VERSIONS, parquet=True, place=PLACE)
        assert ending in html
        assert "<h2>Apply the advice</h2>" in html
    assert "choice set" not in render(KINDS["calm"], VERSIONS, parquet=True, place=PLACE), "all alike"


def test_standing_rules_have_a_table() -> None:
    made = page(KINDS["measured"])
    text = " ".join(" ".join(made.text).replace(NO_BREAK, " ").split())
    assert "The best standing rule that was tried, beside the recommended choice alone" in text
    rule = "enq-2; majority of r3, r4, r5 while r1 and r2 are down"
    assert (
        f"queue: the mix {rule}: 6 switches, joint for 6 s, fallback for 60 min 83.0 % 87.0 % +4.00" in text
    )
    assert "queue: Enq/Ok 88.0 % 92.0 % +4.00" in text
    assert "standing rule" not in " ".join(page(KINDS["calm"]).text)


def test_a_choice_in_force_that_changed_is_told_in_the_answer_and_regime_by_regime() -> None:
    made = KINDS["regimes"]
    html = render(made, VERSIONS, parquet=True, place=PLACE)
    text = " ".join(" ".join(page(made).text).replace(NO_BREAK, " ").split())
    told = "What stands here of enq-3 as the choice in force was not measured under it"
    assert html.index('class="card verdict"') < html.index(told) < html.index('class="answer"')
    for row in (
        "2025-10-09 08:53:20 UTC queue: enq-1, 2 min known Enq 90.0 % 95.0 % 12 s 1 12 s 12 s",
        "2025-10-09 08:55:20 UTC queue: enq-3, 2 min known Deq 90.0 % 95.0 % 12 s 1 12 s 12 s",
        "queue: the mix recommended: enq-2 70.0 % 83.0 % 87.0 %",
        "queue: Enq 70.0 % 83.0 % 87.0 %",
    ):
        assert row in text
    unknown = replace(made.regimes[0], known_s=0.0, available=None, recommended_available=None, outages=0)
    table = tables_regimes.regimes(replace(made, regimes=(unknown, *made.regimes[1:])))
    assert [cell.text for cell in table.rows[0]][2:4] == [NO_VALUE, NO_VALUE]
    assert table.rows[0][0].note == "queue: enq-1, nothing known"


def test_where_the_choice_in_force_never_changed_no_regime_is_shown() -> None:
    alone = changing(Made(measured=False).figures(), "enq-1")
    assert render(alone, VERSIONS, parquet=True, place=PLACE) == render(
        KINDS["trace"], VERSIONS, parquet=True, place=PLACE
    )


def test_the_card_says_that_a_choice_was_in_force_at_the_end() -> None:
    made = judged(changing(Made(measured=False).figures(), "enq-3", "enq-1"))
    unrun = replace(made, summary=tuple(replace(row, run_as=None) for row in made.summary))
    assert [row[0].note for row in summary(unrun).rows if "force" in row[0].note] == [
        "enq-1: in force at the end"
    ]


def test_objectives_have_a_card_near_the_top_with_what_each_day_burnt() -> None:
    html = render(KINDS["objectives"], VERSIONS, parquet=True, place=PLACE)
    text = " ".join(page(KINDS["objectives"]).text)
    assert html.index("Service level objectives") < html.index('class="findings"')
    assert "For the queue, enq-1, which was run, misses Enq." in text
    for caption in ("under the choice in force", "Burn rate of each day", "objectives under every choice"):
        assert caption in text
    assert re.search(r"2026-11-02\s+10\s+500.% of the budget", " ".join(text.split()))
    assert "Service level objectives" not in render(KINDS["measured"], VERSIONS, parquet=True, place=PLACE)


def test_the_recommended_choice_stands_beside_the_one_in_force_with_its_command() -> None:
    text = " ".join(" ".join(page(KINDS["objectives"]).text).replace(NO_BREAK, " ").split())
    for row in (
        "Enq and Deq enq-2: recommended 99.90 % 43.2 min 15 min 10 min",
        "Enq and Deq enq-1: in force 98.5 % 10.8 h 15 min 10 min",
    ):
        assert row in text
    card = text.index("The recommended choice and the one in force")
    assert (
        card
        < text.index("quorate choice set queue/NAME --advice out/figures.json")
        < text.index("Service level objectives")
    )
    assert "one in force" not in " ".join(page(KINDS["measured"]).text)
