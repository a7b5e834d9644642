"""What a terminal shows of errors: one sentence each, in the words of who types commands."""

import pytest
import typer

from quorate.api_specs.problems import KINDS
from quorate.cli.output import answer, errors_shown, say
from quorate.client_sdk import BadInput, RefusedByReplicas


def test_who_types_commands_is_told_of_the_variable_and_not_of_a_header(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = RefusedByReplicas(
        f"r1 (this replica asks for a token. {KINDS['unauthorized'].advice.removesuffix('.')})", definite=True
    )
    with pytest.raises(typer.Exit) as ended, errors_shown(as_json=False):
        raise refused
    assert ended.value.exit_code == 1
    shown = capsys.readouterr().err
    assert "asks for a token. Set QUORATE_TOKEN to a token that this cluster accepts)" in shown
    assert "header" not in shown
    assert "token=" not in shown


def test_what_is_wrong_with_an_argument_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = BadInput(
        "deadline_s 1 is below wait_s 2; deadline_s is 99.0: use above 0 to 25.0 (deadline_s_max)"
    )
    with pytest.raises(typer.Exit) as ended, errors_shown(as_json=False):
        raise wrong
    assert ended.value.exit_code == 2
    told = "--deadline 1 is below --wait 2; --deadline is 99.0: use above 0 to 25.0 (deadline_s_max)"
    assert capsys.readouterr().err == f"quorate: {told}\n"


def test_error_gives_a_terminal_nothing_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), errors_shown(as_json=False):
        raise RefusedByReplicas("r1 (\x1b]0;mine\x07 \u202e)", definite=True)
    assert capsys.readouterr().err == "quorate: r1 (\\u001b]0;mine\\u0007 \\u202e)\n"


def test_nothing_that_is_told_moves_anything_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """`check` and `repair` tell of values that anybody may have written."""
    answer(False, None, 'k\t"\u202eevil\x9b"\nand\x1b[2J more')
    say("two\nlines \u2066")
    told = capsys.readouterr()
    assert told.out == 'k\t"\\u202eevil\\u009b"\nand\\u001b[2J more\n'
    assert told.err == "two\nlines \\u2066\n"
