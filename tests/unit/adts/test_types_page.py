"""docs/reference/types.md says what the catalogue and the search say."""

from pathlib import Path

from tests.unit.adts.types_page import rendered

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "types.md"


def test_the_page_says_what_the_search_finds() -> None:
    assert PAGE.read_text() == rendered(), (
        "write it with: python -m tests.unit.adts.types_page > docs/reference/types.md"
    )
