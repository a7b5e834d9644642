"""Every page lies in one of the groups, is listed in the index, and can be read in one sitting."""

from collections.abc import Iterable

from tests.docs.pages import ROOT, linked_pages, links_of

INDEX = "docs/README.md"
GROUPS = ("tutorial", "how-to", "reference", "explanation", "decisions", "internals")
WORDS_MAX = 2_000
GENERATED = {
    "docs/internals/planted-mistakes.md",
    "docs/reference/figures.md",
    "docs/reference/http.md",
    "docs/reference/library.md",
    "docs/reference/licences.md",
    "docs/reference/limits.md",
    "docs/reference/metrics.md",
    "docs/reference/sdk.md",
    "docs/reference/types.md",
}
"""Pages that are made from code, for looking things up: these may be longer."""

PAGES = [page for page in linked_pages() if page.startswith("docs/") and page != INDEX]


def misplaced(pages: Iterable[str]) -> list[str]:
    """The pages that lie in no group, or deeper than one."""
    return [page for page in pages if page.split("/")[1:-1] not in [[group] for group in GROUPS]]


def too_long(texts: Iterable[tuple[str, str]]) -> list[str]:
    """The pages that have more words than one reads at once, with how many they have."""
    counts = [(page, len(text.split())) for page, text in texts if page not in GENERATED]
    return [f"{page}: {words} words" for page, words in counts if words > WORDS_MAX]


def test_every_page_lies_in_a_group() -> None:
    assert misplaced(PAGES) == []


def test_a_page_outside_the_groups_is_told() -> None:
    assert misplaced(["docs/new.md", "docs/how-to/new.md", "docs/how-to/a/new.md"]) == [
        "docs/new.md",
        "docs/how-to/a/new.md",
    ]


def test_no_page_is_too_long() -> None:
    assert too_long((page, (ROOT / page).read_text()) for page in PAGES) == []


def test_a_page_that_is_too_long_is_told() -> None:
    text = "word " * (WORDS_MAX + 1)
    told = too_long([("docs/how-to/new.md", text), ("docs/reference/http.md", text), ("docs/a.md", "word")])
    assert told == ["docs/how-to/new.md: 2001 words"]


def test_generated_pages_are_there() -> None:
    assert set(PAGES) >= GENERATED


def test_the_index_lists_every_page_itself() -> None:
    """Decisions are listed in an index of their own."""
    listed = {target.partition("#")[0] for _, target in links_of((ROOT / INDEX).read_text())}
    wanted = {page.removeprefix("docs/") for page in PAGES}
    decisions = {page for page in wanted if page.startswith("decisions/")} - {"decisions/README.md"}
    assert wanted - decisions - listed == set()
