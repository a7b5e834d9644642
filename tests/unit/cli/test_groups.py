"""What is said of a word that is no command, and of an option before its command."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quorate.cli.app import app_of


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
        (("--cluster", "x", "status"), "--cluster goes behind the command: quorate COMMAND … --cluster "),
        (("queue", "jobs", "--deadline", "1", "size"), "quorate queue COMMAND … --deadline "),
        (("--size", "status"), "No such option: --size "),
        (("queue", "jobs", "deqeue"), "No such command 'deqeue'. Did you mean 'dequeue'? "),
        (("token", "frob"), "No such command 'frob'. There are: new"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(words: tuple[str, ...], told: str) -> None:
    assert told in said(*words)


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
