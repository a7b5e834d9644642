"""docs/how-to/notebook.md, cell by cell: cells share their variables, as in a notebook, and print what stands beneath them.

The page has a heading of its own for Spark's cells; the others run where there is no Java, too.
"""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.docs.pages import ROOT, Block, blocks_of
from tests.docs.reader import Reader, Wrong

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = "docs/how-to/notebook.md"
SPARK: Final = "\n## The same with Spark\n"
TEXT: Final = (ROOT / PAGE).read_text(encoding="utf-8")


def follow(blocks: list[Block], folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the blocks in an empty folder, those of Python in one namespace of this process, and compare outputs; the namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    folder.mkdir(exist_ok=True)
    with Reader(folder) as reader:
        patch.chdir(folder / "here")
        for block in blocks:
            if block.mark == "run: python":
                with redirect_stdout(io.StringIO()) as printed:
                    exec(compile(block.text, block.place, "exec"), names)  # noqa: S102
                reader.printed = printed.getvalue()
            else:
                reader.do(block)
    return names


def test_cells_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    blocks = blocks_of(PAGE, TEXT.partition(SPARK)[0])
    follow(blocks, tmp_path, monkeypatch)


@pytest.mark.spark
def test_cells_of_spark_print_what_the_page_says(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells, in the session that there is: the page's own cell finds it."""
    assert follow(blocks_of(PAGE, TEXT), tmp_path, monkeypatch)["spark"] is spark


def test_a_cell_that_prints_something_else_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ("run: python", "a = 1"), ("run: python", "print(a)"), ("output", "{}")
    page = "".join(f"<!-- {mark} -->\n```\n{text}\n```\n" for mark, text in cells)
    follow(blocks_of(PAGE, page.format(1)), tmp_path / "right", monkeypatch)
    with pytest.raises(Wrong, match="it prints something else"):
        follow(blocks_of(PAGE, page.format(2)), tmp_path / "wrong", monkeypatch)


def test_every_cell_has_its_output_beneath() -> None:
    blocks = blocks_of(PAGE, TEXT)
    assert TEXT.count(SPARK) == 1
    assert len(blocks) % 2 == 0
    assert [block.mark.split(":")[0] for block in blocks] == ["run", "output"] * (len(blocks) // 2)
