"""Options in front of their command, and what is said of a word that is no command."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from quorate.cli.app import app_of
from quorate.cli.groups import _options_below, take_numbers_as_digits


def said(*words: str) -> str:
    """What the command says of a wrong command line, without the frame."""
    done = CliRunner().invoke(
        app_of(words[0]), words, prog_name="quorate", env={"TERM": "dumb", "COLUMNS": "300"}
    )
    assert done.exit_code == 2
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--cluster", "nowhere.toml", "status"), "There is no cluster file nowhere.toml"),
        (("--cluster=nowhere.toml", "queue", "jobs", "size"), "There is no cluster file nowhere.toml"),
        (("-c", "nowhere.toml", "queue", "--deadline", "1", "jobs", "size"), "no cluster file nowhere.toml"),
        (("queue", "jobs", "--json", "-c", "nowhere.toml", "size"), "no cluster file nowhere.toml"),
        (("--cluster", "nowhere.toml", "token", "new", "a:read"), "No such option: --cluster "),
        (("--cluster", "nowhere.toml"), "Usage: quorate [OPTIONS] COMMAND"),
        (("queue", "--cluster", "nowhere.toml", "jobs"), "Missing command."),
        (("--size", "status"), "No such option: --size "),
        (("queue", "jobs", "deqeue"), "No such command 'deqeue'. Did you mean 'dequeue'? "),
        (("dict", "put", "users", "ann", "1"), "The name comes first: quorate dict users put ann 1"),
        (("token", "frob"), "No such command 'frob'. There are: new"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(words: tuple[str, ...], told: str) -> None:
    assert told in said(*words)


def test_help_behind_an_option_of_a_command_is_help() -> None:
    done = CliRunner().invoke(app_of(), ["--cluster", "nowhere.toml", "--help"], prog_name="quorate")
    assert (done.exit_code, "Usage: quorate [OPTIONS] COMMAND" in done.output) == (0, True)


def test_an_option_takes_a_value_at_every_command_or_at_none() -> None:
    """In front of a command nobody can tell otherwise what is its value and what is the command."""
    tree: Any = typer.main.get_command(app_of())
    assert len(dict(_options_below(tree))) == len(set(_options_below(tree)))


@pytest.mark.parametrize("number", ["1_0", " 10", "10\n"])
def test_a_number_that_python_alone_reads_is_refused(number: str) -> None:
    tree: Any = typer.main.get_command(app_of("register"))
    take_numbers_as_digits(tree)
    words = ["register", "leader", "read", "--cluster", "nowhere.toml", "--deadline"]
    with pytest.raises(typer.BadParameter, match="write a number without underscores and spaces"):
        tree([*words, number], standalone_mode=False)
    assert tree([*words, "10"], standalone_mode=False) == 2  # There is no such file.


def test_a_number_that_is_left_out_is_the_default() -> None:
    tree: Any = typer.main.get_command(app_of("queue"))
    take_numbers_as_digits(tree)
    assert tree(["queue", "jobs", "dequeue", "--cluster", "nowhere.toml"], standalone_mode=False) == 2


def test_the_command_refuses_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "quorate.cli.main", "queue", "jobs", "dequeue", "--json", "--max", "1_0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["error"]) == (
        2,
        "Invalid value for '--max': write a number without underscores and spaces",
    )


@pytest.mark.parametrize(
    ("words", "completed"),
    [("quorate que", "queue"), ("quorate queue jobs enq", "enqueue"), ("quorate status --clu", "--cluster")],
)
def test_a_shell_completes_words_and_options(words: str, completed: str) -> None:
    asked = {
        "_QUORATE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "quorate.cli.main"],
        env=os.environ | asked,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed in done.stdout.split()


@pytest.mark.parametrize(
    ("word", "left_out"),
    [
        (
            "serve",
            (
                "quorate.measurement.run.measuring",
                "quorate.quorums.planning.search",
                "quorate.cli.demo.command",
            ),
        ),
        ("token", ("quorate.client_sdk.api.client", "quorate.cli.cluster.commands", "asyncio")),
        ("queue", ("quorate.quorums.planning.search", "quorate.cli.demo.command")),
    ],
)
def test_a_command_starts_without_what_other_commands_need(word: str, left_out: tuple[str, ...]) -> None:
    asked = f"import sys; from quorate.cli.app import app_of; app_of({word!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )
    assert not set(left_out) & set(done.stdout.split())
