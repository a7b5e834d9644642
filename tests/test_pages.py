"""The how-to pages do what they say: every block that a reader would type is run, in order, on a live cluster."""

from pathlib import Path

import pytest

from tests.reader import Reader, blocks_of, unmarked

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"huey.md": ["now 42", "later 3"]}
"""Pages of which every block is marked, and what is printed on the way."""


@pytest.mark.parametrize("page", PAGES)
def test_every_block_that_can_be_run_says_whether_it_is(page: str) -> None:
    assert not unmarked(blocks_of((DOCS / page).read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_reader_can_follow_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        # The command is on the path of who reads a page.
        reader.shell('export PATH="$PWD/.venv/bin:$PATH"\n')
        printed = reader.follow(blocks_of((DOCS / page).read_text()))
    finally:
        reader.stop()
    for expected in PAGES[page]:
        assert expected in printed, printed
