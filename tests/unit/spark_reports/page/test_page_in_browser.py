"""The page in a real headless browser: nothing in the console, nothing loaded, charts drawn, readable by eye and by ear."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.page.page import render
from tests.support import browser
from tests.support.browser import CONTRASTS, MARK_CONTRAST_MIN, OVERFLOWING, TEXT_CONTRAST_MIN, Tab
from tests.unit.spark_reports.page.test_page import KINDS, PLACE, VERSIONS

PHONE = 360
TABLET = 830
"""Just wide enough for the wide drawings, which are smallest there."""

SCREEN = 1280

SIZES = """[...document.querySelectorAll('figure')].map(figure => {
  const drawn = [...figure.querySelectorAll('svg[role=img]')].filter(svg => svg.checkVisibility());
  return drawn.map(svg => {
    const inner = svg.getBBox();
    return [svg.classList[0], svg.clientWidth, svg.clientHeight, inner.width, inner.height];
  });
})"""

SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('svg[role=img] text')].filter(text => text.checkVisibility())
  .map(text => {
    const svg = text.closest('svg');
    return parseFloat(getComputedStyle(text).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width;
  }))"""

CUT_TEXT = """[...document.querySelectorAll('svg[role=img] text')].filter(text => text.checkVisibility()).filter(text => {
  const own = text.getBoundingClientRect(), svg = text.closest('svg').getBoundingClientRect();
  return own.left < svg.left - 1 || own.right > svg.right + 1 || own.top < svg.top - 1 || own.bottom > svg.bottom + 1;
}).map(text => text.textContent)"""


OPEN: Final = "document.querySelectorAll('details.part').forEach(part => part.open = true)"
"""What a reader does who wants to see all parts."""
SCREENS_MAX: Final = 4


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """One tab for all tests: starting a browser takes a second."""
    with browser.tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each kind of run, in a file."""
    folder = tmp_path_factory.mktemp("pages")
    made = dict(KINDS)
    made["names"] = replace(
        KINDS["measured"], source=replace(KINDS["measured"].source, plan="# " + "a-very-long-word" * 40)
    )
    paths = {}
    for kind, figures in made.items():
        paths[kind] = folder / f"{kind}.html"
        paths[kind].write_text(render(figures, VERSIONS, parquet=True, place=PLACE), encoding="utf-8")
    return paths


def test_the_browser_reports_what_a_page_gets_wrong(tab: Tab, tmp_path: Path) -> None:
    """The checks below can fail: a page that loads, complains and sticks out is found out."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'><script>console.error('seen')</script><img src='http://example.invalid/a.png'>"
        "<p style='width: 900px; color: #999; background: #fff'>wide and faint</p><svg role=img width=5 height=5></svg>"
    )
    tab.messages.clear()
    tab.requests.clear()
    tab.show(bad, width=PHONE)
    assert any("seen" in message for message in tab.messages)
    assert "http://example.invalid/a.png" in tab.requests
    assert tab.evaluate(OVERFLOWING.replace("{width}", str(PHONE)))
    assert min(tab.evaluate(CONTRASTS)["text"].values()) < TEXT_CONTRAST_MIN
    assert ("image", "") in tab.accessible()


@pytest.mark.parametrize("width", [PHONE, TABLET, SCREEN])
@pytest.mark.parametrize("kind", [*KINDS, "names"])
def test_charts_are_drawn_and_nothing_sticks_out(
    tab: Tab, pages: dict[str, Path], kind: str, width: int
) -> None:
    tab.messages.clear()
    tab.requests.clear()
    tab.show(pages[kind], width=width)
    tab.evaluate(OPEN)
    assert tab.messages == []
    assert tab.requests == [pages[kind].as_uri()]
    figures = tab.evaluate(SIZES)
    assert figures
    for drawings in figures:
        ((css, *sizes),) = drawings
        assert css == ("narrow" if width == PHONE else "wide"), "the drawing that fits, and no other"
        assert min(sizes) > 50
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERFLOWING.replace("{width}", str(width))) == []
    assert tab.evaluate(CUT_TEXT) == []
    assert tab.evaluate(SMALLEST_TEXT) >= 10.5


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_marks_stand_out_in_light_and_dark(tab: Tab, pages: dict[str, Path], dark: bool) -> None:
    tab.show(pages["measured"], dark=dark)
    tab.evaluate(OPEN)
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    found: dict[str, dict[str, float]] = tab.evaluate(CONTRASTS)
    assert len(found["text"]) > 15
    assert len(found["marks"]) > 10
    assert {name: value for name, value in found["text"].items() if value < TEXT_CONTRAST_MIN} == {}
    assert {name: value for name, value in found["marks"].items() if value < MARK_CONTRAST_MIN} == {}


@pytest.mark.parametrize("kind", ["measured", "trace"])
def test_a_listener_gets_the_charts_by_name_and_the_parts_by_heading(
    tab: Tab, pages: dict[str, Path], kind: str
) -> None:
    tab.show(pages[kind])
    folded = [name for role, name in tab.accessible() if role == "heading"]
    assert folded[-2:] == ["Versions and files", "Apply the advice"] if kind == "measured" else folded[-1:]
    tab.evaluate(OPEN)
    heard = tab.accessible()
    images = [name for role, name in heard if role == "image"]
    assert len(images) == (5 if kind == "measured" else 3), (
        "symbols of legends are silent, their words are not"
    )
    assert all(len(name) > 60 for name in images)
    for role in ("banner", "main"):
        assert role in [found for found, _ in heard]
    headings = [name for role, name in heard if role == "heading"]
    assert headings[:2] == ["Availability by quorum choice", "The answer"]
    unnamed = [role for role, name in heard if role in {"table", "link", "region"} and not name]
    assert unnamed == []
    boxes = [name for role, name in heard if role == "group" and name]
    assert len(boxes) == len([role for role, _ in heard if role == "table"]), (
        "each table scrolls in a box with its name"
    )
    legend = [name for role, name in heard if role == "StaticText"]
    assert "Pareto front" in legend


def test_the_answer_and_the_names_of_all_other_parts_are_four_screens_at_most(
    tab: Tab, pages: dict[str, Path]
) -> None:
    tab.show(pages["measured"], width=SCREEN)
    height, screen = tab.evaluate("[document.documentElement.scrollHeight, innerHeight]")
    assert height <= SCREENS_MAX * screen
    assert tab.evaluate("[...document.querySelectorAll('h2')].every(each => each.checkVisibility())")


def test_a_link_into_a_folded_part_opens_it(tab: Tab, pages: dict[str, Path]) -> None:
    tab.show(pages["measured"])
    is_shown = "document.querySelector('#rejected').checkVisibility({contentVisibilityAuto: true})"
    assert not tab.evaluate(is_shown)
    tab.evaluate("document.querySelector('a[href=\"#rejected\"]').click()")
    tab.wait_for(is_shown)


def test_every_chart_can_be_had_as_a_table_without_a_mouse(tab: Tab, pages: dict[str, Path]) -> None:
    tab.show(pages["measured"])
    tab.evaluate(OPEN)
    before = len([role for role, _ in tab.accessible() if role == "table"])
    tab.evaluate(
        "[...document.querySelectorAll('details')].forEach(details => details.querySelector('summary').focus())"
    )
    tab.evaluate("[...document.querySelectorAll('figure summary')].forEach(summary => summary.click())")
    heard = tab.accessible()
    assert len([role for role, _ in heard if role == "table"]) == before + 5
    figures: list[int] = tab.evaluate(
        "[...document.querySelectorAll('figure')].map(figure => [...figure.querySelectorAll('table')]"
        ".filter(table => table.checkVisibility({contentVisibilityAuto: true})).length)"
    )
    assert min(figures) >= 1


def test_tables_are_told_row_by_row(tab: Tab, pages: dict[str, Path]) -> None:
    tab.show(pages["measured"])
    heard = tab.accessible()
    assert (
        "rowheader",
        f"enq-2 Enq (0,{NO_BREAK}2), Deq (4,{NO_BREAK}4); typed, recommended",
    ) in heard
    assert ("columnheader", "Mix served") in heard
    assert any(
        role == "table" and name.startswith("The queue: availability of each operation")
        for role, name in heard
    )


def test_it_prints_on_paper_with_its_tables(tab: Tab, pages: dict[str, Path]) -> None:
    tab.show(pages["measured"], width=718, dark=True, media="print")
    assert tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')") == "#fff"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 718
    ((css, *_),) = tab.evaluate(SIZES)[0]
    assert css == "wide"
    hidden: list[Any] = tab.evaluate(
        "[...document.querySelectorAll('details:not(.big) table')]"
        ".filter(table => !table.checkVisibility()).map(table => table.caption.textContent)"
    )
    assert hidden == []
    printed = tab.pdf()
    assert printed.startswith(b"%PDF-")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", _inflated(printed))) <= 20


def _inflated(pdf: bytes) -> bytes:
    """The parts of a PDF, those that are packed unpacked."""
    parts = [pdf]
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            parts.append(zlib.decompressobj().decompress(packed))
        except zlib.error:
            continue
    return b"\n".join(parts)
