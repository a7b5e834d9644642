"""Tokens and files of TLS, as `quorate doctor` looks at them: what the environment names, and what replicas show."""

import os
import socket
import ssl
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...client_sdk.errors import BadInput
from ...client_sdk.transport.tls import from_environment
from ...replica.access.token_list import BadTokens, from_file, from_text
from ..cluster.probe import TlsFailed
from ..credentials import read_token
from ..failure import Usage
from .check import Check

EXPIRY_DAYS_MIN: Final = 14
TIMEOUT_S: Final = 2.0
SENT: Final = frozenset({"token", "files of TLS"})
"""The checks of what goes with a question to a replica: none can be asked while one of these fails."""
_DAY_S: Final = 86_400


def secret_checks() -> Iterator[Check]:
    """What the variables name, each only where it is set."""
    if os.environ.get("QUORATE_TOKEN") or os.environ.get("QUORATE_TOKEN_FILE"):
        yield token()
    for variable in ("QUORATE_TOKEN_FILE", "QUORATE_TLS_KEY"):
        if name := os.environ.get(variable):
            yield hidden(variable, Path(name))
    if os.environ.get("QUORATE_TOKENS_FILE") or os.environ.get("QUORATE_TOKENS"):
        yield tokens()
    if any(os.environ.get(f"QUORATE_TLS_{name}") for name in ("CA", "CERT", "KEY")):
        yield tls()


def token() -> Check:
    """Whether the token that is sent can be read, and is one."""
    try:
        read_token()
    except Usage as error:
        return Check(
            "token", False, str(error), "`quorate token new` makes one; see docs/how-to/tokens-and-tls.md"
        )
    return Check("token", True, "it has the form of one")


def hidden(variable: str, path: Path) -> Check:
    """Whether a file with a secret is its owner's alone."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return Check(variable, False, f"{path}: {error.strerror}", "name a file that is there")
    is_hidden = not mode & (stat.S_IRWXG | stat.S_IRWXO)
    return Check(variable, is_hidden, f"{path} has mode {mode:04o}", f"chmod 600 {path}", needed=False)


def tokens() -> Check:
    """Whether the list of tokens that a replica accepts can be used, and holds the one that it sends to the others."""
    file, text = os.environ.get("QUORATE_TOKENS_FILE", ""), os.environ.get("QUORATE_TOKENS", "")
    if file and text:
        found = "QUORATE_TOKENS_FILE and QUORATE_TOKENS are both set"
        return Check("list of tokens", False, found, "keep one of the two")
    try:
        access = from_file(Path(file), read_token()) if file else from_text(text, read_token())
    except (BadTokens, Usage) as error:
        return Check(
            "list of tokens", False, str(error), "mend that line or file; replicas keep the list of before"
        )
    problem = access.own_problem()
    fix = "`quorate token new --scope replica --add LIST` makes one; put it into QUORATE_TOKEN_FILE of each replica"
    return Check("list of tokens", problem is None, problem or f"{len(access.known.credentials)} tokens", fix)


def tls() -> Check:
    """Whether the files of TLS can be used together."""
    try:
        from_environment().context()
    except BadInput as error:
        return Check("files of TLS", False, str(error), "name files in PEM form that belong together")
    return Check("files of TLS", True, "they can be used")


def certificate_checks(urls: Mapping[str, str]) -> Iterator[Check]:
    """How long the certificate of each replica with an https:// URL is still valid."""
    for id, url in urls.items():
        if url.startswith("https:"):
            yield certificate(id, url)


def certificate(id: str, url: str) -> Check:
    """The certificate that a replica shows."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    what, fix = f"certificate of {id}", "give it a new certificate: it takes changed files without a restart"
    try:
        with (
            socket.create_connection((host, parts.port or 443), TIMEOUT_S) as bare,
            from_environment().context().wrap_socket(bare, server_hostname=host) as secured,
        ):
            shown = secured.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        return Check(what, False, error.verify_message, f"{fix}; or name its authority in QUORATE_TLS_CA")
    except ssl.SSLError as error:
        return Check(what, False, f"not seen: {error.reason or error}", TlsFailed(error).fix, needed=False)
    except (OSError, BadInput) as error:
        words = (isinstance(error, OSError) and error.strerror) or str(error)
        return Check(
            what, False, f"not seen: {words}", "start the replica, or mend the way to it", needed=False
        )
    left_days = (ssl.cert_time_to_seconds(str(shown.get("notAfter"))) - time.time()) / _DAY_S
    return Check(what, left_days >= EXPIRY_DAYS_MIN, f"valid for {left_days:.0f} days more", fix)
