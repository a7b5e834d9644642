"""The group of commands that all of ours are: what it says of a word that is no command, and of an option before its command.

Must not know any command.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__mro__[1]
"""What the parser raises for any wrong command line; typer names only this kind of it."""

_NEGATIVE: Final = re.compile(r"-\d")
"""What the parser makes of a negative number: an option of one digit."""


class Group(TyperGroup):
    """A group that names its commands where it was given none of them, and the place of an option that belongs to one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.suggest_commands = False  # It would suggest some for a misplaced option, too.

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the parser: an option that only commands have is told to belong behind them."""
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            option = getattr(error, "option_name", "")
            if option in set(_options_below(self)):
                error.message = f"{option} goes behind the command: {ctx.command_path} COMMAND … {option}"
                error.possibilities = None
            raise

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
                near = get_close_matches(args[0], self.commands, n=1)
                error.message += (
                    f" Did you mean '{near[0]}'?" if near else f" There are: {', '.join(self.commands)}."
                )
            raise


def _options_below(group: TyperGroup) -> Iterator[str]:
    for command in group.commands.values():
        for parameter in command.params:
            yield from parameter.opts
        if isinstance(command, TyperGroup):
            yield from _options_below(command)
