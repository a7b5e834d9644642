"""The README does what it says: every block of it that a reader would type is run, in order, on a live cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reader import Reader, blocks_of, unmarked

BLOCKS = blocks_of((Path(__file__).parent.parent / "README.md").read_text())


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    try:
        yield someone
    finally:
        someone.stop()


def test_every_block_that_can_be_run_says_whether_it_is() -> None:
    assert not unmarked(BLOCKS)


@pytest.mark.slow
def test_reader_can_follow_from_top_to_bottom(reader: Reader) -> None:
    printed = reader.follow(BLOCKS)
    for expected in (
        '[Enq("wash"); Ok()]',
        '{"items":["fold"]}',
        "[{'clean': 'kitchen'}]",
        "bob leads",
        "'bob': {'age': 41}",
        "['iron'",
        "item = item'",
        "  (0, 1)   (3, 1)   (3, 0)     \n  (0, 2)   (2, 2)   (2, 0)     \n  (0, 3)   (1, 3)   (1, 0)",
        "  (0, 1)   (5, 1)   (5, 0)     \n  (0, 2)   (4, 2)   (4, 0)     \n  (0, 3)   (3, 3)   (3, 0)",
        "  (1, 5)     (1, 0)   \n  (2, 4)     (2, 0)   \n  (3, 3)     (3, 0)",
        "  (0, 1)     (5, 0)   \n  (0, 2)     (4, 0)   \n  (0, 3)     (3, 0)   \n  (0, 4)     (2, 0)   \n  (0, 5)     (1, 0)",
        "  (3, 3)   (3, 3)   (3, 0)",
        "equal votes; Enq/Ok (0, 1)  Deq/Ok (3, 1)  Deq/Empty (3, 0)",
    ):
        assert expected in printed, printed
