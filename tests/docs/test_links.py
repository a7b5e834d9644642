"""What pages link to is there: files, and headings within them."""

import pytest

from tests.docs.pages import ROOT, anchors_of, linked_pages, links_of

INDEX = "docs/README.md"
PAGES = linked_pages()


def broken(page: str) -> list[str]:
    """The links of a page that lead nowhere; those to other sites are not followed."""
    found = []
    for line, target in links_of((ROOT / page).read_text()):
        path, _, anchor = target.partition("#")
        if path.startswith(("https://", "http://", "mailto:")):
            continue
        goal = (ROOT / page).parent / path if path else ROOT / page
        if not goal.exists():
            found.append(f"{page}:{line}: {target}: there is no such file")
        elif anchor and anchor not in anchors_of(goal.read_text()):
            found.append(f"{page}:{line}: {target}: there is no such heading")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    assert broken(page) == []


def test_the_index_leads_to_every_page() -> None:
    folder = (ROOT / INDEX).parent
    linked = {
        (folder / target.partition("#")[0]).resolve() for _, target in links_of((ROOT / INDEX).read_text())
    }
    assert [
        page for page in PAGES if page.startswith("docs/") and page != INDEX and ROOT / page not in linked
    ] == []


def test_the_readme_leads_to_the_index() -> None:
    assert INDEX in {target for _, target in links_of((ROOT / "README.md").read_text())}
