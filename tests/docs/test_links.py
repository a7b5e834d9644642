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


def linked_from(index: str) -> set[str]:
    """The pages that an index links to, and those that the indexes of other folders among them do."""
    targets = (target.partition("#")[0] for _, target in links_of((ROOT / index).read_text()))
    goals = {((ROOT / index).parent / target).resolve() for target in targets}
    linked = {page for page in PAGES if ROOT / page in goals}
    return linked.union(*(linked_from(page) for page in linked if is_index_below(page, index)))


def is_index_below(page: str, index: str) -> bool:
    """Whether the page is the index of a folder inside that of `index`."""
    folder = index.removesuffix("README.md")
    return page != index and page.startswith(folder) and page.endswith("/README.md")


def test_the_index_leads_to_every_page() -> None:
    wanted = {page for page in PAGES if page.startswith("docs/") and page != INDEX}
    assert wanted - linked_from(INDEX) == set()


def test_the_readme_leads_to_the_index() -> None:
    assert INDEX in {target for _, target in links_of((ROOT / "README.md").read_text())}
