"""Quorum systems as text: `a*b + c*d`, `choose(2; a, b, c)`, `votes(3; a:2, b:1, c:1)`. Pure.

    system  :=  term { "+" term }                     one of them (or)
    term    :=  factor { "*" factor }                 all of them (and)
    factor  :=  NAME | "(" system ")"
             |  "choose" "(" NUMBER ";" system { "," system } ")"       or "choose(0; )", nobody
             |  "majority" "(" system { "," system } ")"
             |  "votes" "(" NUMBER ";" NAME ":" NUMBER { "," NAME ":" NUMBER } ")"
             |  "grid" "(" NAME { "," NAME } ";" NAME { "," NAME } ... ")"      its rows

What `str` makes of a system can be read again and is the same system, but for votes that name a replica twice: who
writes these has miscounted.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

from .systems import (
    DEPTH_MAX,
    NOBODY,
    BadQuorums,
    Replica,
    System,
    Threshold,
    all_of,
    any_of,
    choose,
    grid,
    majority,
)

TEXT_CHARS_MAX: Final = 10_000

_TOKEN = re.compile(r"\s*(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)|([-+*(),;:]))")
Item = TypeVar("Item")


def parse_system(text: str) -> System:
    """The system that `text` describes; BadQuorums names the place, counted in characters from 1, and what may stand there.

    Example: `parse_system("a*b + c*d")` is the grid of two rows.
    """
    if len(text) > TEXT_CHARS_MAX:
        raise BadQuorums(f"the system has {len(text)} characters; write at most {TEXT_CHARS_MAX}")
    parser = _Parser(text)
    system = parser.system(0)
    parser.expect("", "the end, + or *")
    return system


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        place = 0
        while text[place:].strip():
            if (found := _TOKEN.match(text, place)) is None:
                place += len(text[place:]) - len(text[place:].lstrip())
                raise BadQuorums(f"character {place + 1} of {text!r}: {text[place]!r} means nothing here")
            self.tokens.append((found[1] or found[2], found.start(found.lastindex or 0)))
            place = found.end()
        self.tokens.append(("", len(text)))
        self.next = 0

    @property
    def token(self) -> str:
        return self.tokens[self.next][0]

    def fail(self, wanted: str) -> BadQuorums:
        shown = repr(self.token) if self.token else "the end"
        return BadQuorums(
            f"character {self.tokens[self.next][1] + 1} of {self.text!r}: {shown} stands where {wanted} should"
        )

    def take(self) -> str:
        token = self.token
        self.next += 1
        return token

    def expect(self, token: str, wanted: str = "") -> None:
        if self.token != token:
            raise self.fail(wanted or repr(token))
        self.next += bool(token)

    def name(self) -> str:
        if not self.token or self.token in "-+*(),;:":
            raise self.fail("a replica or a parenthesis")
        return self.take()

    def number(self) -> int:
        if not (self.token.isascii() and self.token.isdigit() and len(self.token) <= 9):
            raise self.fail("a number")
        return int(self.take())

    def listed(self, item: Callable[[], Item], between: str) -> list[Item]:
        found = [item()]
        while self.token == between:
            self.take()
            found.append(item())
        return found

    def system(self, depth: int) -> System:
        if depth > DEPTH_MAX:
            raise BadQuorums(
                f"the system {self.text[:60]!r}… has more than {DEPTH_MAX} levels; write it flatter"
            )
        terms = self.listed(lambda: self.term(depth), "+")
        return terms[0] if len(terms) == 1 else any_of(terms)

    def term(self, depth: int) -> System:
        factors = self.listed(lambda: self.factor(depth), "*")
        return factors[0] if len(factors) == 1 else all_of(factors)

    def factor(self, depth: int) -> System:
        if self.token == "(":
            self.take()
            inner = self.system(depth + 1)
            self.expect(")", "')', + or *")
            return inner
        name = self.name()
        if self.token != "(":
            return Replica(name)
        self.take()
        made = self.call(name, depth + 1)
        self.expect(")", "')' or a comma")
        return made

    def call(self, name: str, depth: int) -> System:
        match name:
            case "choose" | "votes":
                needed = self.number()
                self.expect(";")
                if name == "votes":
                    return self.votes(needed)
                if needed == 0 and self.token == ")":
                    return NOBODY
                return choose(needed, self.listed(lambda: self.system(depth), ","))
            case "majority":
                return majority(self.listed(lambda: self.system(depth), ","))
            case "grid":
                return grid(self.listed(lambda: self.listed(self.name, ","), ";"))
        raise BadQuorums(f"{name}(…) is no kind of system: use choose, votes, majority or grid")

    def votes(self, needed: int) -> System:
        parts = tuple(self.listed(self.weighted, ","))
        names = [part.name for _, part in parts if isinstance(part, Replica)]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise BadQuorums(f"votes({needed}; …) names {twice[0]} twice; give each replica its votes once")
        total = sum(weight for weight, _ in parts)
        if needed > total == 0:
            raise BadQuorums(f"votes({needed}; …) gives no votes at all; give at least one replica a vote")
        if needed > total:
            raise BadQuorums(f"{needed} votes are needed but there are {total}; give 0 to {total}")
        return Threshold(needed, parts)

    def weighted(self) -> tuple[int, System]:
        part = self.term(DEPTH_MAX)
        self.expect(":")
        return self.number(), part
