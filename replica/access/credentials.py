"""Who may do what: the list of tokens that a replica accepts, as lines of text, and the check of a header against it.

Owns the form of a line, and the comparison. Must not know where lines come from (`access`), nor which request needs
which scope (`rights`). A list holds no token, only SHA-256 digests; errors name a line and never quote it.
"""

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

from ...api_specs.limits import REQUESTS_PER_S_MAX, TOKENS_MAX
from ...api_specs.tokens import IMPLIED, SCOPES, TOKEN_CHARS_MAX, ScopeName, digest_of, is_scope, is_tag
from .rate import Bucket

NAME_CHARS_MAX: Final = 64
OBJECTS_MAX: Final = 16
"""Patterns that one token names."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_PATTERN: Final = re.compile(r"[a-z*?\[][a-z0-9_*?\[\]!-]*/[A-Za-z0-9._~@=:+*?\[\]!-]{1,200}")
_WORDS: Final = ("tag", "scopes", "sha256", "name", "rate", "objects", "via")
_SCHEME: Final = b"bearer"


class BadTokens(ValueError):
    """A list of tokens that cannot be used; the sentence names the place and the remedy."""


@dataclass(frozen=True, repr=False)
class Credential:
    """One accepted token: what it lets its holder do, with which objects, and how often. `tag` is empty for a token of another form; `objects` are
    patterns, none for all objects; one that `is_http_only` opens no replica protocol. Two are equal that accept the same token for the same."""

    tag: str
    scopes: frozenset[ScopeName]
    digest: bytes
    name: str
    rate_max: float
    objects: tuple[str, ...] = ()
    is_http_only: bool = False

    def __repr__(self) -> str:
        return f"Credential({self.shown})"

    @cached_property
    def bucket(self) -> Bucket:
        """How often its holder may ask now."""
        return Bucket(self.rate_max)

    @property
    def told(self) -> dict[str, Any]:
        """What anybody may know of it, for programs; its scopes with all that they imply."""
        return {
            "tag": self.tag,
            "name": self.name,
            "scopes": sorted(self.scopes),
            "rate": self.rate_max,
            "objects": list(self.objects),
            "http_only": self.is_http_only,
        }

    def may_use(self, dictionary_or_object: str) -> bool:
        """Whether it is for that object."""
        return not self.objects or any(fnmatchcase(dictionary_or_object, each) for each in self.objects)

    def may_list(self, prefix: str) -> bool:
        """Whether it is for all objects whose names begin so, as a pattern says that ends with its only `*`. (No name has another mark of patterns.)"""
        beginnings = tuple(each[:-1] for each in self.objects if each.endswith("*"))
        return not self.objects or prefix.startswith(beginnings)

    @property
    def shown(self) -> str:
        """How it is called in logs: its name, else its tag, else that it has neither."""
        return self.name or self.tag or "a token without a tag"


def anyone() -> Credential:
    """Whoever reaches a replica that asks for no token."""
    return Credential("", frozenset(SCOPES), b"", "anyone", REQUESTS_PER_S_MAX)


class TokenList:
    """The credentials that are valid now."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self.credentials: Final[tuple[Credential, ...]] = tuple(credentials)
        self._by_tag: Final[Mapping[bytes, Credential]] = {
            each.tag.encode(): each for each in self.credentials if each.tag
        }
        self._plain: Final[Sequence[Credential]] = [each for each in self.credentials if not each.tag]

    def find(self, header: bytes) -> Credential | None:
        """The credential that an Authorization header proves; None when it proves none.

        A digest is compared in constant time. Only the tag, which is public, decides which one.
        """
        scheme, _, token = header.partition(b" ")
        token = token.strip(b" ")
        if scheme.lower() != _SCHEME or not token or len(token) > TOKEN_CHARS_MAX:
            return None
        given = digest_of(token)
        tagged = self._by_tag.get(token[3:9]) if token.startswith(b"qt_") else None
        if tagged is not None:
            return tagged if hmac.compare_digest(given, tagged.digest) else None
        found = None
        for each in self._plain:
            if hmac.compare_digest(given, each.digest):
                found = each
        return found

    @property
    def binds_sites(self) -> bool:
        """Whether any credential has sites of its own."""
        return bool(self._by_tag)

    def is_foreign(self, credential: Credential, site: str) -> bool:
        """Whether `site` belongs to another credential than that one."""
        if credential.tag:
            return not site.startswith(credential.tag)
        return site[:6].encode() in self._by_tag


def parse_tokens(text: str, source: str, kept: TokenList | None = None) -> TokenList:
    """The list in `text`: one token on a line, as `tag=k7f2qa scopes=read,write sha256=HEX name=shop rate=100 objects=queue/shop.*`.

    Empty lines and those that begin with `#` say nothing. Credentials that are in `kept` unchanged go on counting their
    rate. Raises BadTokens.
    """
    found: list[Credential] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words and not words.startswith("#"):
            found.append(_credential(words, f"{source}, line {number}"))
    if not found:
        raise BadTokens(
            f"{source} lists no token: nobody could do anything. `quorate token new` makes a line"
        )
    if len(found) > TOKENS_MAX:
        raise BadTokens(f"{source} lists {len(found)} tokens; at most {TOKENS_MAX} are allowed")
    for what, keys in (
        ("tag", [each.tag for each in found if each.tag]),
        ("sha256", [each.digest for each in found]),
    ):
        if len(set(keys)) < len(keys):
            raise BadTokens(f"{source} has two lines with the same {what}: remove one")
    before = {each: each for each in kept.credentials} if kept else {}
    return TokenList(before.get(each, each) for each in found)


def plain_token(token: str) -> TokenList:
    """The list that accepts one token of any form, for everything."""
    every = frozenset(SCOPES)
    return TokenList([Credential("", every, digest_of(token.encode()), "", REQUESTS_PER_S_MAX)])


def _credential(line: str, place: str) -> Credential:
    words: dict[str, str] = {}
    for word in line.split():
        name, equals, value = word.partition("=")
        if not equals or name not in _WORDS or name in words:
            known = ", ".join(f"{each}=…" for each in _WORDS)
            raise BadTokens(f"{place}: a line is made of {known}, each once at most (never the token itself)")
        words[name] = value
    if not _DIGEST.fullmatch(words.get("sha256", "")):
        raise BadTokens(
            f"{place}: sha256= must be the 64 hexadecimal digits that `quorate token new` printed"
        )
    tag = words.get("tag", "")
    if tag and not is_tag(tag):
        raise BadTokens(
            f"{place}: tag= must be 6 letters or digits, as in the token; leave it out for others"
        )
    name = words.get("name", "")
    if name and not _NAME.fullmatch(name):
        raise BadTokens(f"{place}: name= must be 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 . _ @ -")
    scopes = _scopes(words.get("scopes", ""), place)
    digest, rate = bytes.fromhex(words["sha256"]), _rate(words.get("rate"), place)
    objects, is_http_only = (
        _objects(words.get("objects"), scopes, place),
        _via(words.get("via"), scopes, place),
    )
    return Credential(tag, scopes, digest, name, rate, objects, is_http_only)


def _scopes(text: str, place: str) -> frozenset[ScopeName]:
    found: set[ScopeName] = set()
    for word in text.split(","):
        if not is_scope(word):
            raise BadTokens(f"{place}: scopes= must name some of {', '.join(SCOPES)}, with commas between")
        found |= IMPLIED[word]
    return frozenset(found)


def _objects(text: str | None, scopes: frozenset[ScopeName], place: str) -> tuple[str, ...]:
    if text is None:
        return ()
    found = tuple(text.split(","))
    if len(found) > OBJECTS_MAX or not all(map(_PATTERN.fullmatch, found)):
        raise BadTokens(
            f"{place}: objects= must name 1 to {OBJECTS_MAX} patterns with commas between, as queue/shop.*,dictionary/carts (a dictionary's keys are included)"
        )
    if not scopes <= IMPLIED["write"]:
        raise BadTokens(
            f"{place}: objects= is for tokens of scope read or write: admin and replica are for the whole cluster"
        )
    return found


def _via(text: str | None, scopes: frozenset[ScopeName], place: str) -> bool:
    if text not in (None, "http"):
        raise BadTokens(
            f"{place}: via= must be http, for the HTTP API alone; leave it out for both protocols"
        )
    if text and "replica" in scopes:
        raise BadTokens(f"{place}: via=http is not for replicas: these speak the replica protocol")
    return text is not None


def _rate(text: str | None, place: str) -> float:
    if text is None:
        return REQUESTS_PER_S_MAX
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= REQUESTS_PER_S_MAX:
        raise BadTokens(f"{place}: rate= must be 1 to {REQUESTS_PER_S_MAX:g} requests a second")
    return float(text)
