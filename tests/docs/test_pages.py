"""Every page of the documentation does what it says, from top to bottom, where it is read first: in an empty folder."""

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, RUN_BY, blocks_of, run_pages
from tests.docs.reader import Reader, is_known

ELSEWHERE = {
    "README.md": "tests/docs/test_checkouts.py",
    "docs/how-to/celery.md": "tests/docs/test_checkouts.py",
    "docs/how-to/clients.md": "tests/generated_clients/test_clients_page.py",
    "docs/how-to/huey.md": "tests/docs/test_checkouts.py",
    "docs/how-to/notebook.md": "tests/unit/spark_reports/figures/test_notebook_page.py",
    "docs/how-to/report-on-a-cluster.md": "tests/unit/spark_reports/test_cluster.py",
    "docs/tutorial/first-queue.md": "tests/docs/test_checkouts.py",
}
"""Pages that need more than what is installed with the package, or are read in another way, and where they are run."""


def _lines_of_json(text: str) -> None:
    """One value, or one on each line as in a log."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)


PARSERS: dict[str, Callable[[str], object]] = {
    "json": _lines_of_json,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}

PAGES = {page: blocks_of(page, (ROOT / page).read_text()) for page in run_pages()}
RUN = [
    page
    for page, blocks in PAGES.items()
    if page not in ELSEWHERE and any(b.mark.startswith("run") for b in blocks)
]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_becomes_of_it(page: str) -> None:
    assert [f"{block.place}: {block.mark!r}" for block in PAGES[page] if not is_known(block.mark)] == []


@pytest.mark.parametrize("page", PAGES)
def test_data_is_in_form(page: str) -> None:
    for block in PAGES[page]:
        if block.language in PARSERS:
            try:
                PARSERS[block.language](block.text)
            except (ValueError, yaml.YAMLError) as error:
                pytest.fail(f"{block.place}: {error}")


def test_pages_that_are_run_elsewhere_are_there() -> None:
    for page, test in ELSEWHERE.items():
        assert PAGES[page]
        assert page in (ROOT / test).read_text()


def test_blocks_that_are_run_elsewhere_are_asked_for_there() -> None:
    named = {
        block.mark.removeprefix(RUN_BY)
        for page in PAGES.values()
        for block in page
        if block.mark.startswith(RUN_BY)
    }
    assert [path for path in named if f'blocks_run_by("{path}")' not in (ROOT / path).read_text()] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_reader_can_follow(page: str, tmp_path: Path) -> None:
    if "10.0.0." in (ROOT / page).read_text() and sys.platform != "linux":
        pytest.skip("only Linux answers at all addresses 127.0.0.x")
    with Reader(tmp_path) as reader:
        reader.follow(PAGES[page])
