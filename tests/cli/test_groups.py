"""What is said of a word that is no command, and of an option before its command."""

import pytest
from typer.testing import CliRunner

from quorate.cli.app import app


def said(*words: str) -> str:
    """What the command says of a wrong command line, without the frame."""
    done = CliRunner().invoke(app, words, prog_name="quorate", env={"TERM": "dumb", "COLUMNS": "300"})
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
