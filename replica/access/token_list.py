"""Which tokens a replica accepts at this moment, and which one it sends to the others.

Owns where the list comes from (a file, which is read again when it changes; a text; or one plain token) and what a
request's header proves. A file that cannot be used leaves the list that was valid before: a slip must not lock everyone
out, and the log says so.
"""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...api_specs.limits import (
    CONNECTIONS_MAX,
    DOCUMENTS_PER_S_MAX,
    HEALTH_PER_S_MAX,
    UNPROVEN_PER_S_MAX,
)
from ..logs.audit import audit
from .credentials import BadTokens, Credential, TokenList, anyone, parse_tokens, plain_token
from .rate import Bucket, Buckets

FILE_BYTES_MAX: Final = 1024 * 1024
_log = logging.getLogger(__name__)
_Stamp = tuple[int, ...]


class Access:
    """The credentials of one replica. Build it with `nobody_asked`, `one_token`, `from_text` or `from_file`."""

    def __init__(self, known: TokenList | None, own_token: str | None, path: Path | None = None) -> None:
        self._known = known
        self._path: Final = path
        self._stamp: _Stamp | None = None
        self.own_token: Final = own_token
        """What this replica's front end sends to the other replicas."""
        self._anyone: Final = anyone()
        self.matched_by: Callable[[str], str] = str
        """What patterns of objects are matched with, by an object's name; the replica's application says it."""
        self.unproven: Final = Bucket(UNPROVEN_PER_S_MAX)
        self.health: Final = Buckets(HEALTH_PER_S_MAX, CONNECTIONS_MAX)
        """Of each address: so no flood has a load balancer refused elsewhere."""
        self.documents: Final = Buckets(DOCUMENTS_PER_S_MAX, CONNECTIONS_MAX)
        """Of each address, for what is the same for every cluster."""

    def __repr__(self) -> str:
        return f"Access({'anyone' if self._known is None else list(self._known.credentials)})"

    @property
    def known(self) -> TokenList:
        """The credentials that are valid now; none where no token is asked for."""
        return _NOBODY if self._known is None else self._known

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self._known is None

    def find(self, header: bytes) -> Credential | None:
        """Whom an Authorization header proves; None for nobody."""
        return self._anyone if self._known is None else self._known.find(header)

    def own_problem(self) -> str | None:
        """Why this replica's front end could not work with the others, as far as can be told here."""
        if self._known is None:
            return None
        if self.own_token is None:
            return (
                "a list of tokens is given, but none that this replica sends to the others: put one of scope replica "
                "into QUORATE_TOKEN or QUORATE_TOKEN_FILE"
            )
        proven = self._known.find(b"Bearer " + self.own_token.encode())
        if proven is None or "replica" not in proven.scopes:
            return (
                "the token that this replica sends to the others (QUORATE_TOKEN) is not of scope replica in its own list, "
                "so it will hardly be in theirs: add its line to all lists"
            )
        return None

    @property
    def may_change(self) -> bool:
        """Whether this replica's own token allows to change the configuration, as far as can be told here."""
        if self._known is None:
            return True
        proven = self._known.find(b"Bearer " + (self.own_token or "").encode())
        return proven is not None and "admin" in proven.scopes

    def look(self, *, wanted: bool = False) -> None:
        """Read the file again if it has changed, or if `wanted`."""
        if self._path is None:
            return
        stamp = _stamp(self._path)
        if stamp == self._stamp and not wanted:
            return
        self._stamp = stamp
        try:
            new = parse_tokens(_read(self._path), str(self._path), self._known)
        except BadTokens as error:
            _log.error("the tokens valid before stay valid: %s", error)
            return
        before, self._known = self._known, new
        _tell(before, new, str(self._path))


_NOBODY: Final = TokenList(())


def nobody_asked() -> Access:
    """No token is asked for: whoever reaches the replica may do everything."""
    return Access(None, None)


def one_token(token: str | None) -> Access:
    """One token of any form for everything, which is also sent to the others; `nobody_asked` without one."""
    return nobody_asked() if token is None else Access(plain_token(token), token)


def from_text(text: str, own_token: str | None) -> Access:
    """The list in `text` (lines may also be parted by `;`). Raises BadTokens."""
    return Access(parse_tokens(text.replace(";", "\n"), "QUORATE_TOKENS"), own_token)


def from_file(path: Path, own_token: str | None) -> Access:
    """The list in a file, which is read again when it changes. Raises BadTokens."""
    stamp = _stamp(path)  # before it is read: what changes meanwhile is read again
    access = Access(parse_tokens(_read(path), str(path)), own_token, path)
    access._stamp = stamp
    return access


def _read(path: Path) -> str:
    try:
        # Without waiting: nobody need ever write to a pipe that stands there, and this is read on the event loop.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise BadTokens(f"{path} is not a regular file: put the list itself there")
            if mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise BadTokens(
                    f"{path} can be written by other users, who could let anyone in: chmod 600 {path}"
                )
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadTokens(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadTokens(f"{path} is longer than {FILE_BYTES_MAX} bytes: is it the list of tokens?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadTokens(f"{path} is no UTF-8 text: is it the list of tokens?") from None


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # Mode and change time, too: a list that was refused for its mode is mended by chmod alone, which leaves the rest as it is.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_mode, found.st_size, found.st_ino


def _tell(before: TokenList | None, after: TokenList, source: str) -> None:
    old = {each.digest: each for each in before.credentials} if before else {}
    new = {each.digest: each for each in after.credentials}
    added = [each.shown for digest, each in new.items() if digest not in old]
    removed = [each.shown for digest, each in old.items() if digest not in new]
    changed = [each.shown for digest, each in new.items() if digest in old and each != old[digest]]
    audit("tokens-read", source=source, valid=len(new), added=added, removed=removed, changed=changed)


__all__ = ["Access", "BadTokens", "from_file", "from_text", "nobody_asked", "one_token"]
