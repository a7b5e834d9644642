"""Pages that begin with a checkout are followed from there, by somebody who has nothing installed: what they install with pip, is.

What `make` installs is linked to what it has installed here, where the whole suite runs in it.
"""

import re
from pathlib import Path

import pytest

from tests.docs import linked_environment
from tests.docs.checkout import (
    AS_THEY_ARE,
    check_out,
    constraints,
    has_commit,
    link_environments,
)
from tests.docs.pages import ROOT, Block, blocks_of, blocks_run_by
from tests.docs.reader import Reader, Wrong

# The suite is what runs this: of it, `make test` in a page runs one room, the same way.
ONE_ROOM = {"PYTEST_ADDOPTS": "-p no:cacheprovider tests/unit/timestamps", "WORKERS": "1"}
# Each plan is run once: to compile it, or to plan it again at every stage, takes longer; and nobody need prove Spark's classes
# sound (see the fixture `spark`).
PLAIN_SPARK = {
    "JDK_JAVA_OPTIONS": "-XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-Dspark.sql.adaptive.enabled=false -Dspark.sql.codegen.wholeStage=false "
    "-Dspark.sql.codegen.factoryMode=NO_CODEGEN -Dspark.python.sql.dataFrameDebugging.enabled=false"
}

pytestmark = pytest.mark.slow


def test_reader_can_follow_readme(tmp_path: Path) -> None:
    check_out(tmp_path / "here")
    linked_environment.equip(tmp_path / "here")
    with Reader(tmp_path, has_command=False, variables=ONE_ROOM | PLAIN_SPARK) as reader:
        reader.follow(blocks_of("README.md", (ROOT / "README.md").read_text()))


@pytest.mark.parametrize("page", ["docs/tutorial/first-queue.md"])
def test_newcomer_can_follow(page: str, tmp_path: Path) -> None:
    check_out(tmp_path / "here")
    pins = constraints(ROOT / "requirements.lock", tmp_path)
    with Reader(tmp_path, has_command=False, variables=pins | AS_THEY_ARE) as newcomer:
        newcomer.follow(blocks_of(page, (ROOT / page).read_text()))


@pytest.mark.parametrize("page", ["docs/how-to/celery.md", "docs/how-to/huey.md"])
def test_extras_that_a_page_names_are_all_that_it_needs(page: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with Reader(tmp_path, has_command=False) as newcomer:
        linked_environment.put_into(tmp_path / "bin")
        newcomer.follow(blocks_of(page, (ROOT / page).read_text()))


def test_what_no_extra_names_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with Reader(tmp_path, has_command=False) as newcomer:
        linked_environment.put_into(tmp_path / "bin")
        for text in (
            "python3 -m venv .venv; . .venv/bin/activate; pip install '.[cli]'; quorate --help",
            "! python -c 'import fastapi' && ! python -c 'import celery' && ! pip install celery",
        ):
            newcomer.do(Block("a page", 1, "run: sh", "sh", text))


def test_mended_mistake_shows_at_the_commit_before(tmp_path: Path) -> None:
    [block] = blocks_run_by("tests/docs/test_checkouts.py")
    before = re.findall(r"\b[0-9a-f]{7}\^", block.text)
    if not all(map(has_commit, before)):
        pytest.skip(f"the history of this checkout does not reach back to {before}")
    check_out(tmp_path / "here")
    link_environments(tmp_path / "here")
    with (
        Reader(tmp_path, has_command=False, variables=AS_THEY_ARE) as reader,
        pytest.raises(Wrong, match="it ended with 1") as shown,
    ):
        reader.do(block._replace(mark="run: sh"))
    assert "register/r is not linearizable" in str(shown.value)
