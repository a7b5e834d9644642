"""Which patterns of object names say nothing, or nothing new beside an earlier one: inclusion of shell-style patterns. Pure.

A pattern is an automaton of its characters: `*` may stand for any text, `?` for one character, `[...]` for one of a set. One
pattern covers another when no name is matched by the other alone; that is looked for over pairs of states, letter by letter.
"""

import re
from collections import deque
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from ..adts.types.catalogue import NAME_PATTERN

STEPS_MAX: Final = 10_000
"""Pairs of states looked at for two patterns; ones that take more are not found to cover each other."""
_TOKEN: Final = re.compile(r"\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)
_MARK: Final = re.compile(r"[*?\[]")
_FIRST: Final = re.compile(NAME_PATTERN)
_LETTERS: Final = [chr(code) for code in range(33, 127) if _FIRST.fullmatch("a" + chr(code))]

States = frozenset[int]


def is_met(pattern: str, adts: Collection[str]) -> bool:
    """Whether there can be an object of these data types that matches it."""
    tokens = _tokens(pattern)
    letters = _told_apart(set(tokens))
    return any(_is_met(tokens, _after(tokens, f"{adt}/"), letters) for adt in adts)


def _is_met(tokens: Sequence[str], start: States, letters: Sequence[str]) -> bool:
    """Whether some name leads from one of these states to the end. Each state is looked at once: that one name does is enough."""
    met = frozenset[int]().union(
        *(_step(tokens, start, letter) for letter in letters if _FIRST.fullmatch(letter))
    )
    waiting = set(met)
    while waiting and len(tokens) not in met:
        state = waiting.pop()
        reached = frozenset[int]().union(*(_step(tokens, frozenset((state,)), letter) for letter in letters))
        waiting |= reached - met
        met |= reached
    return len(tokens) in met


def covers(wide: str, narrow: str, adts: Collection[str]) -> bool:
    """Whether every object of these data types that matches `narrow` matches `wide` too, and there can be one. False also where that takes too
    many steps to tell."""
    begins, other = _literal(narrow), _literal(wide)
    if not (begins.startswith(other) or other.startswith(begins)):
        return False
    samples = (narrow.replace("*", ""), narrow.replace("*", "a~Z"))
    is_plain = not any(mark in narrow for mark in "?[")
    if is_plain and not all(fnmatchcase(sample, wide) for sample in samples if _is_name(sample, adts)):
        return False
    wide_tokens, narrow_tokens = _tokens(wide), _tokens(narrow)
    letters = _told_apart({*wide_tokens, *narrow_tokens})
    is_met = False
    for adt in adts:
        starts = _after(narrow_tokens, f"{adt}/"), _after(wide_tokens, f"{adt}/")
        found = _is_covered(narrow_tokens, wide_tokens, starts, letters)
        if found is False:
            return False
        is_met = is_met or found is True
    return is_met


def _is_covered(
    narrow: Sequence[str], wide: Sequence[str], starts: tuple[States, States], letters: Sequence[str]
) -> bool | None:
    """Whether all names that go on from these states and match `narrow` match `wide`; None when there are none."""
    found: bool | None = None
    first = [
        (_step(narrow, starts[0], letter), _step(wide, starts[1], letter))
        for letter in letters
        if _FIRST.fullmatch(letter)
    ]
    waiting, met = deque(first), set(first)
    while waiting:
        pair = waiting.popleft()
        if not pair[0]:
            continue
        if len(narrow) in pair[0]:
            if len(wide) not in pair[1]:
                return False
            found = True
        for letter in letters:
            following = _step(narrow, pair[0], letter), _step(wide, pair[1], letter)
            if following not in met:
                if len(met) == STEPS_MAX:
                    return False
                met.add(following)
                waiting.append(following)
    return found


@lru_cache(maxsize=10_000)
def _literal(pattern: str) -> str:
    """What all that match it begin with."""
    return _MARK.split(pattern, maxsplit=1)[0]


def _is_name(text: str, adts: Collection[str]) -> bool:
    adt, _, name = text.partition("/")
    return adt in adts and _FIRST.fullmatch(name) is not None


def _tokens(pattern: str) -> tuple[str, ...]:
    """One for each character of a name, and `*`."""
    return tuple("*" if each.startswith("*") else each for each in _TOKEN.findall(pattern))


def _told_apart(tokens: set[str]) -> list[str]:
    """One letter of each kind that the tokens tell apart."""
    sets = sorted(token for token in tokens if token != "*")
    kinds = {(letter == ".", *(fnmatchcase(letter, token) for token in sets)): letter for letter in _LETTERS}
    return list(kinds.values())


def _after(tokens: Sequence[str], text: str) -> States:
    states = _with_stars(tokens, {0})
    for letter in text:
        states = _step(tokens, states, letter)
    return states


def _step(tokens: Sequence[str], states: States, letter: str) -> States:
    reached = set()
    for state in states:
        if state < len(tokens) and fnmatchcase(letter, tokens[state]):
            reached.add(state if tokens[state] == "*" else state + 1)
    return _with_stars(tokens, reached)


def _with_stars(tokens: Sequence[str], states: set[int]) -> States:
    """And those that are reached by letting `*` stand for nothing."""
    for state in sorted(states):
        following = state
        while following < len(tokens) and tokens[following] == "*":
            following += 1
            states.add(following)
    return frozenset(states)
