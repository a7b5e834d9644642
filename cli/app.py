"""The command tree: which word leads to which command.

Only what the word names is imported: the start of a process is most of what a short command takes.
"""

import sys
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer

from .. import __version__
from ..adts.collector import collector_off
from .failure import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from .groups import Group, UsageError, take_numbers_as_digits
from .output import tell_error

EXIT_CODES = (
    "Exit codes: 0 it happened; 1 it certainly did not (also: a compare-and-set that did not match); "
    "2 the command line or a file it names is wrong; 3 it may or may not have happened."
)


class _Command(NamedTuple):
    """A word at the top, and where its command or group (named `..._app`) is. `with_modules` add commands to the group as they are
    imported."""

    word: str
    panel: str
    module: str
    name: str
    with_modules: tuple[str, ...] = ()


_COMMANDS: Final = (
    _Command("up", "Replicas", "cluster.commands", "up"),
    _Command("init", "Replicas", "cluster.commands", "init"),
    _Command("format", "Replicas", "cluster.commands", "format_folder"),
    _Command("replace", "Replicas", "cluster.commands", "replace_store"),
    _Command("change", "Replicas", "cluster.change_command", "change"),
    _Command("choice", "Replicas", "cluster.choice_command", "choice_app"),
    _Command("member", "Replicas", "cluster.member_command", "member_app"),
    _Command("serve", "Replicas", "cluster.serve_command", "serve"),
    _Command("backup", "Replicas", "cluster.backup_commands", "backup"),
    _Command("repair", "Objects", "objects.repair_command", "repair"),
    _Command("restore", "Replicas", "cluster.backup_commands", "restore"),
    _Command("restore-cluster", "Replicas", "cluster.backup_commands", "restore_cluster"),
    _Command("report", "Looking", "reports.report_command", "report"),
    _Command("trace", "Looking", "objects.trace_command", "trace"),
    _Command("status", "Looking", "cluster.status", "status"),
    _Command("configuration", "Looking", "cluster.configuration_command", "configuration"),
    _Command("doctor", "Looking", "doctor.command", "doctor"),
    _Command("check", "Looking", "check.command", "check"),
    _Command("measure", "Looking", "reports.measure_command", "measure_command"),
    _Command("bench", "Looking", "bench.command", "bench"),
    _Command("demo", "Looking", "demo.command", "demo"),
    _Command("playground", "Looking", "playground.command", "playground"),
    _Command("token", "Replicas", "cluster.token_command", "token_app"),
    _Command("queue", "Objects", "objects.commands", "queue_app", ("objects.lease_commands",)),
    _Command("register", "Objects", "objects.commands", "register_app"),
    _Command("dict", "Objects", "objects.commands", "dictionary_app"),
    _Command("object", "Objects", "objects.object_command", "object_app"),
    _Command("types", "Planning", "types.check", "types_app"),
    _Command("call", "Objects", "objects.call_command", "call"),
    _Command("quorums", "Planning", "quorums.commands", "quorums_app", ("quorums.choices", "quorums.plan")),
)


def _tell_version(*, is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"quorate {__version__}")
        raise typer.Exit


def _options(
    is_version_asked: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """See `app_of` for the text."""


def app_of(word: str = "") -> typer.Typer:
    """The tree with the one command of that word; with all of them where none has it."""
    app = typer.Typer(
        name="quorate",
        cls=Group,
        help="Replicated queues, registers and dictionaries by quorum consensus on abstract data types.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for command in [each for each in _COMMANDS if each.word == word] or _COMMANDS:
        _add(app, command)
    return app


def _add(app: typer.Typer, command: _Command) -> None:
    found: Any = getattr(import_module(f"quorate.cli.{command.module}"), command.name)
    for module in command.with_modules:
        import_module(f"quorate.cli.{module}")
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=command.word, rich_help_panel=command.panel)
    else:
        app.command(command.word, rich_help_panel=command.panel)(found)


def run() -> None:
    """Run the command that the arguments name; with --json a wrong command line is told in JSON, too."""
    with collector_off():
        tree: Any = typer.main.get_command(app_of(sys.argv[1] if len(sys.argv) > 1 else ""))
    _leave_out_types_of_flags(tree)
    take_numbers_as_digits(tree)
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
