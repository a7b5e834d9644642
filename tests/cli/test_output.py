"""What a terminal shows of errors: one sentence each, in the words of who types commands."""

import pytest
import typer

from quorate.api_specs.problems import KINDS
from quorate.cli.output import errors_shown
from quorate.client_sdk import RefusedByReplicas


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
