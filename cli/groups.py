"""The group of commands that all of ours are: where it takes options of its commands, and what it says of a word that is no command.

Must not know any command.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, get_args, get_type_hints

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__mro__[1]
"""What the parser raises for any wrong command line; typer names only this kind of it."""

_NEGATIVE: Final = re.compile(r"-\d")
"""What the parser makes of a negative number: an option of one digit."""


class Group(TyperGroup):
    """A group that names its commands where it was given none of them, and takes options of a command in front of it, too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.suggest_commands = False  # It would suggest some for a misplaced option, too.

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the parser: options that only commands have go behind the command's word."""
        return super().parse_args(ctx, _with_options_behind(self, args, ctx.help_option_names))

    def invoke(self, ctx: Any) -> Any:
        """See the parser: a value that looks like an option is told its place."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            takes_words = any(
                each.param_type_name == "argument"
                for each in getattr(error.ctx, "command", ctx.command).params
            )
            if takes_words and _NEGATIVE.fullmatch(getattr(error, "option_name", "")):
                error.message = f"A value that begins with - goes behind --, options in front: {error.ctx.command_path} [OPTIONS] -- VALUE"
                error.possibilities = None
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See the parser: the command that the word may be for, or all that there are."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            if not hasattr(error, "option_name"):
                error.message += f" {self._meant(ctx, args)}"
            raise

    def _meant(self, ctx: Any, args: list[str]) -> str:
        """What may have been meant by a first word that is no command."""
        names = [ctx.params[each.name] for each in self.params if each.param_type_name == "argument"]
        if any(name in self.commands for name in names):
            return f"The name comes first: {ctx.command_path} {shlex.join([args[0], *names, *args[1:]])}"
        near = get_close_matches(args[0], self.commands, n=1)
        return f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(self.commands)}."


def take_numbers_as_digits(command: Any) -> None:
    """Have the command, and all below it, refuse what Python takes for a number, and nobody else: `1_0` is 10 there, and so is ` 10 `."""
    hints = get_type_hints(command.callback) if command.callback else {}
    for each in command.params:
        hint = hints.get(each.name)
        if {int, float} & {hint, *get_args(hint)}:
            each.process_value = partial(_with_digits, each, each.process_value)
    for below in getattr(command, "commands", {}).values():
        take_numbers_as_digits(below)


def _with_digits(option: Any, process: Callable[..., Any], ctx: Any, value: Any) -> Any:
    for word in value if isinstance(value, list | tuple) else [value]:
        if isinstance(word, str) and (
            "_" in word or word != word.strip()
        ):  # What is left out is a number already.
            raise typer.BadParameter("write a number without underscores and spaces", ctx, option)
    return process(ctx, value)


def _with_options_behind(group: TyperGroup, args: list[str], help_names: list[str]) -> list[str]:
    """The words with those options behind the word of the command that stand in front of it and that only commands have."""
    own = dict(_options(group)) | dict.fromkeys(help_names, False)
    below = dict(_options_below(group)) | own
    words_left = 1 + sum(each.param_type_name == "argument" for each in group.params)
    kept, moved, rest = list[str](), list[str](), list(args)
    while rest and words_left:
        name, has_value, _ = rest[0].partition("=")
        is_option = name.startswith("-")
        if is_option and name not in below:
            return args  # The parser says what is wrong.
        taken = 2 if is_option and below[name] and not has_value else 1
        (moved if is_option and name not in own else kept).extend(rest[:taken])
        words_left -= not is_option
        del rest[:taken]
    return [*kept, *moved, *rest] if not words_left else kept


def _options(command: Any) -> Iterator[tuple[str, bool]]:
    """Each option's names, and whether a value follows."""
    for each in command.params:
        if each.param_type_name == "option":
            yield from ((name, not each.is_flag) for name in (*each.opts, *each.secondary_opts))


def _options_below(group: TyperGroup) -> Iterator[tuple[str, bool]]:
    for command in group.commands.values():
        yield from _options(command)
        if isinstance(command, TyperGroup):
            yield from _options_below(command)
