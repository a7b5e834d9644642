"""`quorate token new|list`: make a token and the line that stands for it in a list; show what a list allows."""

import os
import secrets
import string
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...api_specs.tokens import SECRET_BYTES, TAG_CHARS, digest_of, is_scope, make_token
from ...replica.access.credentials import BadTokens, Credential, parse_tokens
from ..failure import Failure, Usage
from ..files import read_text
from ..groups import Group
from ..output import AsJson, answer, reported

token_app = typer.Typer(
    cls=Group, help="Tokens and the lists of them that replicas accept.", no_args_is_help=True
)

_NEW_LIST = "# The tokens that replicas accept: one on a line, as `quorate token new` prints it. No token stands here.\n"


@token_app.command("new")
@reported
def new(
    scope: Annotated[
        list[str], typer.Option("--scope", metavar="SCOPE", help="read, write, admin or replica; repeat it.")
    ],
    name: Annotated[str, typer.Option("--name", help="Whom it is for; shown in logs.")] = "",
    objects: Annotated[
        list[str] | None,
        typer.Option(
            "--objects", metavar="PATTERN", help="For these objects alone, as 'queue/shop.*'; repeat it."
        ),
    ] = None,
    http_only: Annotated[
        bool, typer.Option("--http-only", help="For the HTTP API alone, and not for the SDK.")
    ] = False,
    add: Annotated[
        Path | None, typer.Option("--add", metavar="FILE", help="Add the line to this list; made if need be.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the token to this new file, and do not show it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. It is shown once; what replicas keep of it is the line, which is no secret."""
    for each in scope:
        if not is_scope(each):
            raise Usage(f"--scope {each!r}: use read, write, admin or replica.")
    alphabet = string.ascii_lowercase + string.digits
    tag = "".join(secrets.choice(alphabet) for _ in range(TAG_CHARS))
    token = make_token(tag, secrets.token_urlsafe(SECRET_BYTES))
    line = f"tag={tag} scopes={','.join(dict.fromkeys(scope))} sha256={digest_of(token.encode()).hex()}"
    for option, word, example in (
        ("--name", name, "night-shift"),
        *(("--objects", each, "'queue/shop.*'") for each in objects or ()),
    ):
        if any(sign.isspace() for sign in word):
            raise Usage(f"{option} {word!r}: write it as one word, without blanks, as {option} {example}.")
    if name:
        line += f" name={name}"
    check_list(line, "--name")
    if objects:
        line += f" objects={','.join(objects)}"
        check_list(line, "--objects")
    if http_only:
        line += " via=http"
        check_list(line, "--http-only")
    if out is not None:
        _write_secret(out, token)
    if add is not None:
        _add(add, line)
    where = f"Added to {add}." if add else "Put this line into the list of tokens of every replica:"
    shown = f"The token, shown this once:\n{token}" if out is None else f"The token is in {out}."
    told = {"token": token} if out is None else {"file": str(out)}
    answer(as_json, told | {"tag": tag, "line": line}, f"{shown}\n{where}\n{line}")


@token_app.command("list")
@reported
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A list of tokens.")], as_json: AsJson = False
) -> None:
    """Check a list of tokens, and show who may do what."""
    found = check_list(read_text(file, str(file), "utf-8-sig"), str(file))
    lines = [
        f"{each.tag or '-':8} {each.name or '-':20} {','.join(sorted(each.scopes)):30} {each.rate_max:g}/s  "
        f"{', '.join(each.objects) or 'all objects'}{', HTTP API alone' * each.is_http_only}"
        for each in found
    ]
    answer(as_json, {"tokens": [each.told for each in found]}, "\n".join(lines))


def check_list(text: str, source: str) -> Sequence[Credential]:
    """The tokens that it lists; Usage for a list that a replica would refuse."""
    try:
        return parse_tokens(text, source).credentials
    except BadTokens as error:
        raise Usage(f"{error}.") from None


def _write_secret(file: Path, token: str) -> None:
    """A new file that nobody but its owner may read."""
    try:
        number = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write(token + "\n")
    except FileExistsError:
        raise Usage(f"{file} exists already; nothing was changed. Name another file with --out.") from None
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}.") from None


def _add(file: Path, line: str) -> None:
    """The list with one line more, put in place as a whole: a replica never reads half of it."""
    text = read_text(file, str(file), "utf-8-sig") if file.exists() else _NEW_LIST
    if text and not text.endswith("\n"):
        text += "\n"
    text += line + "\n"
    check_list(text, str(file))
    try:
        number, temporary = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # of mode 0600
        try:
            with os.fdopen(number, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(number)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}.") from None
