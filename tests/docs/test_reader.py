"""Whoever follows a page notices when it is wrong, and says where."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Block, anchors_of, blocks_of, links_of
from tests.docs.ports import Ports
from tests.docs.reader import Reader, Wrong, commands_of, is_known
from tests.docs.stated import differs
from tests.system.harness import until_now

FENCE = "```"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Reader(tmp_path) as someone:
        yield someone


def page_of(*parts: tuple[str, str, str]) -> list[Block]:
    """The blocks of a page: mark, language and text of each. The first fence stands in line 4."""
    text = "# A page\n\n"
    for mark, language, inside in parts:
        text += (
            f"<!-- {mark} -->\n{FENCE}{language}\n{inside}\n{FENCE}\n" if language else f"<!-- {mark} -->\n"
        )
    return blocks_of("docs/page.md", text)


WRONG = {
    "a command that fails": [("run: sh", "sh", "echo so far; false")],
    "a command that fails before the last": [("run: sh", "sh", "false\ntrue")],
    "a program that raises": [("run: python", "python", "raise ValueError('no')")],
    "another output": [("run: sh", "sh", "echo yes"), ("output", "text", "no")],
    "half of the output": [("run: sh", "sh", "echo yes; echo no"), ("output", "text", "yes")],
    "a part that is not there": [("run: sh", "sh", "echo yes"), ("output: part", "text", "no")],
    "a console that prints more": [("run: console", "console", "$ echo yes\nyes\n$ echo no; echo more\nno")],
    "a console that prints without a word": [("run: console", "console", "$ echo yes")],
    "a rule that is refused": [
        ("run: toml", "toml", '[[choices]]\nobjects = "queue/*"\nclasses = { "Deq/Ok" = [1, 1] }')
    ],
    "a rule that is no TOML": [("run: toml", "toml", "[[choices")],
    "a plan that is refused": [("run: plan", "toml", "[time]\nduration = 5")],
    "a system that is none": [("run: systems", "text", "a*b  fine\na +* b  not")],
    "a mark that nobody knows": [("run: perl", "perl", "1")],
    "a service that ends": [("run: service until ready", "sh", "echo never")],
    "replicas that do not start": [("run: background", "sh", "quorate up --data here --ports none")],
    "a word that nobody says": [
        ("run: service", "sh", "python -c 'import time; print(1); time.sleep(1)'"),
        ("output: of python", "text", "2"),
    ],
    "Ctrl-C where nothing goes on": [("do: ctrl-c quorate up", "", "")],
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_block_is_told_with_page_and_line(case: str, reader: Reader) -> None:
    blocks = page_of(*WRONG[case])
    with pytest.raises(Wrong) as told:
        reader.follow(blocks)
    assert str(told.value).startswith(f"docs/page.md:{blocks[-1].line}: ")


def test_a_right_page_is_followed_and_its_shell_remembers(reader: Reader, tmp_path: Path) -> None:
    reader.follow(
        page_of(
            ("run: sh", "sh", "export NAME=ann\nmkdir sub\ncd sub"),
            ("run: file greet.py", "python", "GREETING = 'hello'"),
            (
                "run: console",
                "console",
                '$ echo "$NAME" in \\\n> "${PWD##*/}"\nann in sub\n$ cd ..\n$ echo 1; date\n1\n...',
            ),
            ("run: python", "python", "from greet import GREETING\nprint(GREETING, 8001)"),
            ("output", "text", "hello 8001"),
            ("run by: tests/test_of_others.py", "sh", "false"),
            ("run: sh", "sh", "echo QUORATE_${QUORATE_TOKEN-none}"),
            ("output", "text", "QUORATE_none"),
        )
    )
    assert (tmp_path / "here" / "greet.py").exists()


def test_machines_have_folders_and_addresses_of_their_own(reader: Reader, tmp_path: Path) -> None:
    reader.follow(
        page_of(
            ("run: sh", "sh", "echo shared > a; for n in 1 2 3 4 5; do scp -q a 10.0.0.$n:; done"),
            ("run: sh on every machine", "sh", "cat a; echo r1 at 10.0.0.1:8000 > r1.txt"),
            ("output: part on r4", "text", "shared"),
            ("run: sh on r3", "sh", "cat r1.txt"),
        )
    )
    assert re.fullmatch(r"r3 at 127\.0\.0\.3:[3-7]\d\d0\n", reader.printed)
    assert sorted(path.name for path in tmp_path.glob("machine-*/r*.txt")) == [
        f"r{n}.txt" for n in range(1, 6)
    ]


def test_services_go_on_until_ctrl_c_or_the_end(tmp_path: Path) -> None:
    program = (  # Its line comes in pieces, as where a process has no buffer.
        "import os, time; print('ready ', end='', flush=True); time.sleep(0.3); print(os.getpid(), flush=True); time.sleep(600)"
    )
    page = page_of(
        ("run: file one.py", "python", program),
        ("run: file two.py", "python", program),
        ("run: service until ready", "sh", "python one.py"),
        ("run: service until ready", "sh", "NAME=x python two.py"),
        ("do: ctrl-c one.py", "", ""),
    )
    pids = []
    with Reader(tmp_path) as reader:
        for block in page:
            reader.do(block)
            pids += [int(reader.printed.split()[1])] if "service" in block.mark else []
        assert [_runs(pid) for pid in pids] == [False, True]
    assert not _runs(pids[1])


def _runs(pid: int) -> bool:
    """Whether the process has not ended; one that has may still wait for its parent to ask how."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
def test_the_pid_in_a_block_is_that_of_the_replica(reader: Reader) -> None:
    reader.follow(
        page_of(
            ("run: background", "sh", "quorate up --data there --ports 8001,8002"),
            ("run: sh with the pid of r2", "sh", "kill -9 4711"),
            ("run: sh", "sh", "! quorate status --cluster there/cluster.toml"),
            ("output: part", "text", "...r1...ready...\n...r2...down..."),
        )
    )
    assert not _runs(reader.pids["r2"])
    os.kill(reader.pids["r1"], signal.SIGTERM)


def test_the_command_is_as_its_users_see_it(reader: Reader) -> None:
    reader.follow(
        page_of(
            (
                "run: sh",
                "sh",
                "quorate queue jobs size 2>said || echo it ended with $?\ngrep -c 'no cluster' said",
            ),
            ("output", "text", "it ended with 2\n1"),
            ("run: sh", "sh", "quorate token new --scope read --name ann --add tokens > token; ls tokens"),
            ("output", "text", "tokens"),
        )
    )


def test_who_kills_the_command_ends_what_it_does(reader: Reader) -> None:
    reader.follow(page_of(("run: background", "sh", "quorate up --data there --ports 8001,8002")))
    [service] = reader._services
    service._process.kill()
    service._process.wait()
    until_now(lambda: not any(map(_runs, reader.pids.values())), "the replicas have ended")


def test_a_pid_is_not_taken_for_a_port(reader: Reader) -> None:
    reader.pids["r2"] = 9001
    reader.follow(page_of(("run: sh with the pid of r2", "sh", "echo 4711")))
    assert reader.printed == "9001\n"


def test_two_readers_have_different_ports() -> None:
    with Ports() as one, Ports() as other:
        tens = [int(ports.replaced(text)) for ports in (one, other) for text in ("8000", "9000")]
        assert len(set(tens)) == 4
        assert one.replaced("8003, 80031, 18003") == f"{tens[0] + 3}, 80031, 18003"


def test_marks_that_say_nothing_are_not_known() -> None:
    for mark in (
        "",
        "run",
        "run: perl",
        "run: file",
        "not run: it needs a moon",
        "run by: ",
        "drawn: ",
        "outputs",
    ):
        assert not is_known(mark)


def test_dots_stand_for_what_varies() -> None:
    assert not differs("a\n...\nd …!", "a\nb\nc\nd 17!\n")
    assert not differs("a\n...\nd", "a\nd\n")
    assert not differs("b  \nc\n\n", "  \nb\nc \n")
    assert differs("a b", "a  b")
    assert differs("a\n...", "b\na")
    assert not differs("b", "a\nb\nc", is_part=True)
    assert differs("b\nd", "a\nb\nc\nd", is_part=True)


def test_console_is_taken_apart() -> None:
    assert list(commands_of("$ a \\\n> b\nsaid\n$ c\n")) == [("a \\\nb\n", "said\n"), ("c\n", "")]


def test_blocks_know_their_lines_marks_and_indents() -> None:
    text = f"x\n<!-- one -->\n{FENCE}sh\na\n  b\n{FENCE}\n<!-- two -->\n\n  {FENCE}\n  c\n  {FENCE}\n<!-- do: that -->\n"
    assert blocks_of("p", text) == [
        Block("p", 3, "one", "sh", "a\n  b\n"),
        Block("p", 9, "", "", "c\n"),
        Block("p", 12, "do: that", "", ""),
    ]
    with pytest.raises(AssertionError, match="p:1: this block has no end"):
        blocks_of("p", f"{FENCE}sh\na\n")


def test_anchors_are_made_as_they_are_shown() -> None:
    text = f"# A *B*, `c_d`: e!\n{FENCE}\n# no\n{FENCE}\n## [Two](x.md) words\n## [Two](y.md) words\n"
    assert anchors_of(text) == {"a-b-c_d-e", "two-words", "two-words-1"}


def test_links_are_found_outside_code() -> None:
    text = f"[a](b.md) `[c](d.md)`\n{FENCE}\n[e](f.md)\n{FENCE}\n[two\nlines](g.md#h)\n![i](j.png)\n"
    assert list(links_of(text)) == [(1, "b.md"), (5, "g.md#h")]


def test_readers_find_the_command_only_if_it_is_installed(tmp_path: Path) -> None:
    with Reader(tmp_path, has_command=False) as reader:
        own = f"{Path(sys.executable).parent}"
        [block] = page_of(("run: sh", "sh", "echo $PATH"))
        reader.do(block)
        assert own not in reader.printed.strip().split(":")[:1]
