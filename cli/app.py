"""The command tree: which word leads to which command."""

import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from quorate.cli import (
    backup_commands,
    cluster_commands,
    demo_command,
    doctor,
    lease_commands,
    measure_command,
    object_commands,
    quorums_choices,
    quorums_command,
    quorums_plan,
    repair_command,
    report_command,
    status,
    token_command,
    trace_command,
)
from quorate.cli.failure import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from quorate.cli.groups import Group, UsageError
from quorate.cli.output import tell_error

EXIT_CODES = (
    "Exit codes: 0 it happened; 1 it certainly did not (also: a compare-and-set that did not match); "
    "2 the command line or a file it names is wrong; 3 it may or may not have happened."
)

app = typer.Typer(
    name="quorate",
    cls=Group,
    help="Replicated queues, registers and dictionaries by quorum consensus on abstract data types.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(*, is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"quorate {version('quorate')}")
        raise typer.Exit


@app.callback()
def _options(
    is_version_asked: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """See `app` for the text."""


for command in (cluster_commands.up, cluster_commands.init):
    app.command(rich_help_panel="Replicas")(command)
app.command("format", rich_help_panel="Replicas")(cluster_commands.format_folder)
app.command("replace", rich_help_panel="Replicas")(cluster_commands.replace_store)
app.command(rich_help_panel="Replicas")(cluster_commands.serve)
app.command("backup", rich_help_panel="Replicas")(backup_commands.backup)
app.command("repair", rich_help_panel="Objects")(repair_command.repair)
app.command("restore", rich_help_panel="Replicas")(backup_commands.restore)
app.command("restore-cluster", rich_help_panel="Replicas")(backup_commands.restore_cluster)

app.add_typer(token_command.token_app, name="token", rich_help_panel="Replicas")

for name, command in lease_commands.COMMANDS.items():
    object_commands.queue_app.command(name)(command)
app.add_typer(object_commands.queue_app, name="queue", rich_help_panel="Objects")
app.add_typer(object_commands.register_app, name="register", rich_help_panel="Objects")
app.add_typer(object_commands.dictionary_app, name="dict", rich_help_panel="Objects")

quorums_command.quorums_app.command("choices")(quorums_choices.choices)
quorums_command.quorums_app.command("availability")(quorums_choices.availability_of_choices)
quorums_command.quorums_app.command("plan")(quorums_plan.plan_command)
app.add_typer(quorums_command.quorums_app, name="quorums", rich_help_panel="Planning")

app.command("report", rich_help_panel="Looking")(report_command.report)
app.command("trace", rich_help_panel="Looking")(trace_command.trace)
app.command("status", rich_help_panel="Looking")(status.status)
app.command("doctor", rich_help_panel="Looking")(doctor.doctor)
app.command("measure", rich_help_panel="Looking")(measure_command.measure_command)
app.command("demo", rich_help_panel="Looking")(demo_command.demo)


def run() -> None:
    """Run the command that the arguments name; with --json a wrong command line is told in JSON, too."""
    tree: Any = typer.main.get_command(app)
    _leave_out_types_of_flags(tree)
    if "--json" not in sys.argv:
        tree(prog_name="quorate")
        return
    try:
        code = tree(prog_name="quorate", standalone_mode=False)
    except UsageError as error:
        tell_error(True, error.format_message(), "Usage", EXIT_USAGE)
        code = EXIT_USAGE
    except typer.Abort:
        code = EXIT_FAILED
    sys.exit(code or EXIT_OK)


def _leave_out_types_of_flags(command: Any, parent: Any = None) -> None:
    """The help pages would say `<bool>` beside each flag, where others name the word that follows."""
    context = typer.Context(command, parent, **command.context_settings)
    for option in command.get_params(context):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for each in getattr(command, "commands", {}).values():
        _leave_out_types_of_flags(each, context)
