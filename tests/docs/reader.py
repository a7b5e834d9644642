"""Somebody who follows a page: does what its blocks say, in order, in a scratch folder, and reads what is printed.

Above each block stands a comment with its mark:

* `run: sh`, `run: python`, `run: typescript`: run it to its end, which must be well;
* `run: console`: commands after `$ `, each followed by all that it prints;
* `run: background`: a command that goes on, and is ready with its first line (`quorate up`); `run: service`: another that
  goes on, and is ready at once, or with `run: service until TEXT` when it has printed that;
* `run: file NAME`: write it to that file;
* `run: toml into FILE`: put it above the other quorum choices of that cluster file;
* `run: toml`, `run: plan`, `run: systems`: it must be right as part of a cluster file, as a plan of a measured run, as
  quorum systems, one a line, with remarks behind two spaces;
* `output`: all that the block before printed; `output: part`: lines of it (see `tests.docs.stated`);
* `output: of TEXT`: lines that a command with that text, which goes on, prints sooner or later;
* `drawn: WHAT`: a picture of letters, or a form with names for what a reader fills in;
* `run by: FILE`: that file of tests does it, since it takes more than a shell in an empty folder.

There is no mark for a block that nobody runs.

A comment alone is an action: `do: ctrl-c TEXT` presses Ctrl-C where a command with that text goes on.

`... with the pid of r2`: a number in the block is that process's, as `quorate up` printed it. `... on every machine`, `... on
r3`: in the folder of that machine. The page writes what r1 at 10.0.0.1 does, each other one has its own name and address
in place of these; all are addresses of this machine's loopback, and `scp` copies from folder to folder. The ports that pages
name are replaced by free ones.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from quorate.api_specs.cluster import parse
from quorate.cli.cluster.document import new_document
from quorate.measurement.plan.plan_check import parse_plan
from quorate.quorums.systems.expressions import parse_system
from tests.docs.pages import ACTION, DRAWN, ROOT, RUN_BY, Block
from tests.docs.ports import Ports
from tests.docs.stated import differs
from tests.support import quick_command

STEP_TIMEOUT_S: Final = 900
"""Long, because a block may install all packages while the machine does other work."""
PRINTED_TIMEOUT_S: Final = 60
MACHINES: Final = range(1, 6)
_POLL_S: Final = 0.05
_TSC: Final = "--strict --skipLibCheck --target es2022 --module nodenext"

_KNOWN: Final = re.compile(
    r"(?:run: (?:sh|python|typescript|console|background|service(?: until .+)?|file \S+|toml(?: into \S+)?|plan|systems)"
    rf"|output(?:: part|: of .+)?|{ACTION}ctrl-c .+)(?: with the pid of \S+)?(?: on .+)?|(?:{DRAWN}|{RUN_BY})\S.*"
)

SCP: Final = """#!/bin/sh
# Copies to the folders of machines that are addresses of this one.
while [ "${1#-}" != "$1" ]; do shift; done
for last; do :; done
machine=${last%%:*}
while [ $# -gt 1 ]; do cp -Rp "$1" "$MACHINES/machine-${machine##*.}/${last#*:}" || exit; shift; done
"""


class Wrong(AssertionError):
    """A block does not do what its page says."""

    def __init__(self, block: Block, why: str) -> None:
        super().__init__(f"{block.place}: {why}")


class Terminal:
    """A shell whose variables and folder outlast a block."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder: Final = folder
        self._state: Final = folder.parent / f".{name}.state"
        self._state.write_text(f"cd '{folder}'\n")

    def command(self, text: str, *, goes_on: bool = False) -> list[str]:
        """What runs `text` here; a command that goes on leaves the shell as it was."""
        kept = "" if goes_on else f"trap '{{ export -p; echo \"cd $PWD\"; }} > {self._state}' EXIT\n"
        return [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            f". {self._state}\n{kept}{'exec env ' if goes_on else ''}{text}",
        ]


class Service:
    """A command that goes on, with a file for all that it prints."""

    def __init__(
        self, command: Sequence[str], text: str, log: Path, folder: Path, given: dict[str, str]
    ) -> None:
        self.text: Final = text
        self._log: Final = log
        with log.open("wb") as output:
            self._process: Final = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=given,
            )

    @property
    def printed(self) -> str:
        """The lines that it printed up to now; of the one that it is printing, nothing: it may come in pieces."""
        text = self._log.read_text(errors="replace")
        return text[: text.rfind("\n") + 1]

    def wait_for(self, is_said: Callable[[str], bool]) -> str:
        """What is wrong; nothing once it has printed what is waited for."""
        until_s = time.monotonic() + PRINTED_TIMEOUT_S
        while not is_said(self.printed):
            if self._process.poll() is not None:
                return f"it ended:\n{self.printed}"
            if time.monotonic() > until_s:
                return f"it did not print that within {PRINTED_TIMEOUT_S} s:\n{self.printed}"
            time.sleep(_POLL_S)
        return ""

    def stop(self) -> None:
        """Ctrl-C, and wait for the end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STEP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise


class Reader:
    """Follows pages in `folder`. `has_command`: the command `quorate` is on the path from the beginning, and parts of the
    repository lie there; without it there is what the caller put into `folder / "here"`, and pages install what they need.
    `variables`: of the environment, beside those of this process."""

    def __init__(
        self,
        folder: Path,
        *,
        has_command: bool = True,
        tools: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder: Final = folder
        self.printed = ""
        """What the latest block printed, at its end or, where it goes on, up to now."""
        self.pids: Final[dict[str, int]] = {}
        """Of the replicas that `quorate up` started."""
        self._ports: Final = Ports()
        self._services: Final[list[Service]] = []
        self._here: Final = Terminal(folder / "here", "here")
        self._machines: Final = {f"r{n}": Terminal(folder / f"machine-{n}", f"machine-{n}") for n in MACHINES}
        if has_command:
            _link_what_is_installed(self._here.folder)
        self._given: Final = self._environment(has_command, tools) | dict(variables or {})

    def _environment(self, has_command: bool, tools: Sequence[Path]) -> dict[str, str]:
        """The variables of somebody who has set one of ours alone, for reports without the start of Spark, and who has not entered a virtual environment without the command."""
        commands, programs = self.folder / "bin", Path(sys.executable).parent
        commands.mkdir()
        (commands / "scp").write_text(SCP)
        (commands / "scp").chmod(0o755)
        if has_command:
            quick_command.put_into(commands)
        inherited = [each for each in os.environ["PATH"].split(os.pathsep) if Path(each) != programs]
        # Without the command there is a Python at least, as new as this one: what pages install with.
        path = [*tools, commands, programs if has_command else Path(sys.base_prefix) / "bin", *inherited]
        left_out = ("QUORATE_", "VIRTUAL_ENV", "PYTHONPATH", "MAKE", "MFLAGS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return kept | {
            "PATH": os.pathsep.join(map(str, path)),
            "MACHINES": str(self.folder),
            "COLUMNS": "120",  # as wide as the pages themselves
            "QUORATE_REPORT_ENGINE": "python",  # to start Spark for each report of a page would cost minutes
        }

    def follow(self, blocks: Sequence[Block]) -> None:
        """Do what each block says, in order. Raises Wrong at the first that is not so."""
        for block in blocks:
            self.do(block)

    def do(self, block: Block) -> None:
        """Do what the block's mark says."""
        if not is_known(block.mark):
            raise Wrong(block, f"nobody knows how to do {block.mark!r}")
        if block.mark.startswith((DRAWN, RUN_BY)):
            return
        mark, _, place = block.mark.partition(" on ")
        mark, _, replica = mark.partition(" with the pid of ")
        pid = str(self.pids[replica]) if replica else ""
        block = block._replace(mark=mark)
        terminals = (
            self._machines
            if place == "every machine"
            else {name: self._machines[name] for name in place.split()}
        )
        if not terminals:
            self._do(block, self._here, pid)
        for name, terminal in terminals.items():
            on_it = re.sub(r"\br1\b", name, block.text).replace("10.0.0.1", f"10.0.0.{name[1:]}")
            self._do(block._replace(text=on_it), terminal, pid)

    def _do(self, block: Block, terminal: Terminal, pid: str) -> None:
        text = self._replaced(block.text)
        if pid:  # Last, for a process may have the number of a port that pages name.
            text = re.sub(r"\b\d{3,}\b", pid, text)
        match block.mark.split(" ", 2):
            case ["run:", "sh"]:
                self._run(block, terminal.command(text), terminal)
            case ["run:", "python"]:
                (self.folder / "program.py").write_text(text)
                self._run(
                    block, terminal.command('PYTHONPATH="$PWD:${PYTHONPATH-}" python ../program.py'), terminal
                )
            case ["run:", "typescript"]:
                (terminal.folder / "program.ts").write_text(text)
                self._run(
                    block,
                    terminal.command(
                        f"node node_modules/typescript/bin/tsc {_TSC} program.ts\nnode program.js"
                    ),
                    terminal,
                )
            case ["run:", "console"]:
                for command, stated in commands_of(text):
                    self._run(block, terminal.command(command), terminal)
                    self._compare(block, stated)
            case ["run:", "background"]:
                self._start(block, text, terminal, _has_replicas)
                found = json.loads(self.printed.splitlines()[0])["replicas"]
                self.pids.update({each["id"]: each["pid"] for each in found})
            case ["run:", "service", *until]:
                said = self._replaced(until[0].removeprefix("until ")) if until else ""
                self._start(block, text, terminal, lambda printed: said in printed)
            case ["run:", *_]:
                self._take(block, text, terminal)
            case _:
                self._look(block, text)

    def _take(self, block: Block, text: str, terminal: Terminal) -> None:
        """What is read by a program of ours."""
        match block.mark.split(" ", 2):
            case ["run:", "file", name]:
                (terminal.folder / name).write_text(text)
            case ["run:", "toml"]:
                self._read(block, lambda: parse(_in_a_document(block.text)))
            case ["run:", "toml", into]:
                document = terminal.folder / into.removeprefix("into ")
                document.write_text(document.read_text().replace("[[choices]]", text + "\n[[choices]]", 1))
                self._read(block, lambda: parse(document.read_text()))
            case ["run:", "plan"]:
                self._read(block, lambda: parse_plan(block.text))
            case ["run:", "systems"]:
                for line in block.text.splitlines():
                    self._read(block, partial(parse_system, line.partition("  ")[0]))

    def _look(self, block: Block, text: str) -> None:
        """What is stated, and what is done without a block."""
        match block.mark.split(" ", 2):
            case ["output"]:
                self._compare(block, text)
            case ["output:", "part"]:
                self._compare(block, text, is_part=True)
            case ["output:", "of", command]:
                [*_, service] = self._going_on(block, command)
                if trouble := service.wait_for(lambda printed: not differs(text, printed, is_part=True)):
                    raise Wrong(block, trouble)
            case ["do:", "ctrl-c", command]:
                self._stop(block, command)

    def _replaced(self, text: str) -> str:
        return self._ports.replaced(text).replace("10.0.0.", "127.0.0.")

    def _run(self, block: Block, command: list[str], terminal: Terminal) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=terminal.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=STEP_TIMEOUT_S,
                check=False,
                env=self._given,
            )
        except subprocess.TimeoutExpired as late:
            raise Wrong(block, f"it did not end within {STEP_TIMEOUT_S} s:\n{late.output!r}") from None
        self.printed = done.stdout
        if done.returncode != 0:
            raise Wrong(block, f"it ended with {done.returncode}:\n{done.stdout}")

    def _start(self, block: Block, text: str, terminal: Terminal, is_ready: Callable[[str], bool]) -> None:
        log = self.folder / f"service-{len(self._services)}.log"
        command = terminal.command(text, goes_on=True)
        service = Service(command, text, log, terminal.folder, self._given)
        self._services.append(service)
        if trouble := service.wait_for(is_ready):
            raise Wrong(block, trouble)
        self.printed = service.printed

    def _stop(self, block: Block, text: str) -> None:
        for service in self._going_on(block, text):
            service.stop()
            self._services.remove(service)

    def _going_on(self, block: Block, text: str) -> list[Service]:
        """The commands that hold the text and go on, at least one."""
        found = [service for service in self._services if self._replaced(text) in service.text]
        if not found:
            raise Wrong(block, f"no command with {text!r} goes on")
        return found

    def _read(self, block: Block, read: Callable[[], object]) -> None:
        try:
            read()
        except Exception as error:
            raise Wrong(block, f"it is refused: {error}") from error

    def _compare(self, block: Block, stated: str, *, is_part: bool = False) -> None:
        if difference := differs(stated, self.printed, is_part=is_part):
            raise Wrong(block, f"it prints something else:\n{difference}")

    def __enter__(self) -> Self:
        self._ports.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for service in reversed(self._services):
                service.stop()
        finally:
            self._ports.__exit__(kind, error, trace)


def _link_what_is_installed(here: Path) -> None:
    """As in a checkout of the repository after `make`, where many pages begin."""
    (here / ".venv").symlink_to(sys.prefix)
    for name in ("examples", "tests", "api_specs", "benchmarks"):
        (here / name).symlink_to(ROOT / name)


def is_known(mark: str) -> bool:
    """Whether a mark says something: what to do, or why nothing is done."""
    return _KNOWN.fullmatch(mark) is not None


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with all that it prints; `> ` goes on with a command."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        more = 1
        while more < len(lines) and lines[more].startswith("> "):
            more += 1
        yield lines[0] + "".join(line[2:] for line in lines[1:more]), "".join(lines[more:])


def _has_replicas(printed: str) -> bool:
    return printed.startswith("{") and "\n" in printed


def _in_a_document(rule: str) -> str:
    """A cluster file of three replicas with the rule above its others, and in the place of one of the same name."""
    made = new_document({f"r{number}": f"http://127.0.0.1:800{number}" for number in (1, 2, 3)})
    head, *general = re.split(r"^(?=\[\[choices\]\])", made, flags=re.MULTILINE)
    named = re.findall(r"^objects = .*$", rule, re.MULTILINE)
    return "".join([head, rule + "\n", *(each for each in general if each.splitlines()[1] not in named)])
