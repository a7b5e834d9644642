"""What `make release` makes and refuses: release notes, bill of materials, licences, and a tree that is not clean."""

import re
import subprocess
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

from quorate import __version__
from tests.project import licences_page
from tests.project.bill_of_materials import bill
from tests.project.components import CLIENT, LICENCES, ROOT, for_users, pinned
from tests.project.release import NotReady, notes, refuse_unclean
from tests.project.test_packaging import ROOMS

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-30

### Added

- Clocks.

## [1.1.0] - 2026-10-01

- Older.
"""


def test_notes_are_what_the_changelog_says_of_the_version_alone() -> None:
    assert notes(CHANGELOG, "1.2.0") == "# Quorate 1.2.0\n\n### Added\n\n- Clocks.\n"


@pytest.mark.parametrize(
    ("changed", "version", "why"),
    [
        (("2026-11-30", "soon"), "1.2.0", "YYYY-MM-DD"),
        (("", ""), "1.1.0", r"## \[1.1.0\]"),
        (("", ""), "1.2", "three numbers"),
        (("[Unreleased]\n", "[Unreleased]\n\n- More.\n"), "1.2.0", "under Unreleased"),
        (("## [Unreleased]\n", ""), "1.2.0", "Unreleased"),
    ],
)
def test_a_version_that_the_changelog_does_not_date_is_no_release(
    changed: tuple[str, str], version: str, why: str
) -> None:
    with pytest.raises(NotReady, match=why):
        notes(CHANGELOG.replace(*changed, 1), version)


def test_a_tree_that_is_not_its_commit_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    refuse_unclean(tmp_path)
    (tmp_path / "new.py").touch()
    with pytest.raises(NotReady, match=r"new\.py"):
        refuse_unclean(tmp_path)


def test_every_package_for_users_has_a_licence_in_the_table_and_no_other_one() -> None:
    assert {name for names in for_users().values() for name in names} == LICENCES.keys()


def test_licences_are_those_that_packages_state_in_the_words_of_spdx() -> None:
    found = {}
    for name in LICENCES:
        try:
            stated = metadata(name)
        except PackageNotFoundError:  # for another system
            continue
        if "License-Expression" in stated:
            found[name] = stated["License-Expression"]
    assert len(found) > 20
    assert found == {name: LICENCES[name] for name in found}


def test_page_of_licences_is_up_to_date() -> None:
    page = "docs/reference/licences.md"
    assert (ROOT / page).read_text() == licences_page.rendered(), (
        f"write it with: python -m tests.project.licences_page > {page}"
    )


def test_the_page_of_stability_says_that_nothing_is_deprecated_while_nothing_is() -> None:
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    deprecated = [path for path in rooms if "DeprecationWarning" in path.read_text()]
    openapi = '"deprecated"' in (ROOT / "api_specs/openapi.json").read_text()
    says = "\nNothing is deprecated now.\n" in (ROOT / "docs/reference/stability.md").read_text()
    assert says == (not deprecated and not openapi)


def test_bill_names_all_that_users_install_and_nothing_of_development() -> None:
    components = {each["bom-ref"]: each for each in bill()["components"]}
    locked = {f"pkg:pypi/{name}@{version}" for name in LICENCES for version in pinned()[name].versions}
    [swagger] = components.keys() - locked
    assert swagger.startswith("pkg:npm/swagger-ui-dist@")
    assert components.keys() - {swagger} == locked
    required = {each["name"] for each in components.values() if each["scope"] == "required"}
    assert required == {*for_users()[CLIENT], "swagger-ui-dist"}
    assert not {"pytest", "ruff", "schemathesis"} & {each["name"] for each in components.values()}


def test_bill_says_what_needs_what() -> None:
    made = bill()
    places = {each["bom-ref"] for each in made["components"]}
    needs = {each["ref"]: each["dependsOn"] for each in made["dependencies"]}
    own = f"pkg:pypi/quorate@{__version__}"
    assert {place for place in places if place.startswith("pkg:pypi/")} | {own} == needs.keys()
    assert {place for found in needs.values() for place in found} == places
    [httpx] = [place for place in places if re.match(r"pkg:pypi/httpx@", place)]
    assert httpx in needs[own]
    assert any(place.startswith("pkg:pypi/httpcore@") for place in needs[httpx])


def test_the_same_commit_gives_the_same_bill() -> None:
    assert bill() == bill()
