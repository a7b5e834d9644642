"""Bearer tokens: their form, what may be stored of them, and which sites belong to them. Pure: randomness comes in.

A token of ours is `qt_TAG_SECRET`. The tag is public: it finds the stored line, stands at the front of every site id that
the token's holder takes, and may stand in logs. The secret has 256 random bits, so a plain SHA-256 of the token is all
that needs to be stored: slow, salted hashes are for what people think up, which can be guessed; nobody guesses 256 bits,
and a check that takes milliseconds would be a way to wear a replica out.
"""

import hashlib
import re
from typing import Final, Literal, TypeGuard, get_args

ScopeName = Literal["read", "write", "admin", "replica"]
SCOPES: Final[tuple[ScopeName, ...]] = get_args(ScopeName)

IMPLIED: Final[dict[ScopeName, frozenset[ScopeName]]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"write", "read"}),
    "admin": frozenset({"admin", "read"}),
    "replica": frozenset({"replica", "write", "read"}),
}
"""What each scope lets its holder do, itself included."""

TAG_CHARS: Final = 6
SECRET_BYTES: Final = 32
TOKEN_CHARS_MAX: Final = 1000

_TOKEN: Final = re.compile(r"qt_([a-z0-9]{6})_([A-Za-z0-9_-]{43})")
_TAG: Final = re.compile(r"[a-z0-9]{6}")


def make_token(tag: str, secret: str) -> str:
    """The token of `tag` (6 of a-z 0-9) and `secret` (32 random bytes in base64url)."""
    token = f"qt_{tag}_{secret}"
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token is made of 6 letters or digits, and of 32 bytes in base64url")
    return token


def tag_of(token: str) -> str:
    """The public part of a token; empty for one that was not made by `make_token`."""
    found = _TOKEN.fullmatch(token)
    return found.group(1) if found else ""


def is_tag(text: str) -> bool:
    """Whether `text` may be a tag."""
    return _TAG.fullmatch(text) is not None


def digest_of(token: bytes) -> bytes:
    """What is stored of a token and compared: its SHA-256, 32 bytes."""
    return hashlib.sha256(token).digest()


def is_scope(text: str) -> TypeGuard[ScopeName]:
    """Whether `text` names a scope."""
    return text in SCOPES


def token_problem(token: str) -> str | None:
    """Why `token` cannot be sent in a header, in a few words that never quote it; None when it can."""
    if not token:
        return "it is empty"
    if len(token) > TOKEN_CHARS_MAX:
        return f"it has more than {TOKEN_CHARS_MAX} characters"
    if "\n" in token or "\r" in token:
        return "it has more than one line"
    if not token.isascii():
        return "it has characters beyond ASCII"
    if not token.isprintable() or " " in token:
        return "it has blanks or control characters in it"
    return None
