"""What the TOML form of a plan gets wrong, in words for its author. Pure.

Owns the sentences about keys, types and values that no plan can have; msgspec finds them, and names neither the keys that
there are nor the TOML that would be right.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "array": "a list, as [...]",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table, as {...}",
    "str": "a text in quotes",
}


def in_words(message: str, keys: Mapping[str, Sequence[str]], values: Mapping[str, Sequence[str]]) -> str:
    """msgspec's `message` with the place first, as a plan's author would name it: `failures 2, mttf: …`.

    `keys` names those of each table (`""`: of the plan itself, `workloads.choices`: of one in another), `values` those that
    a key may have.
    """
    told, _, path = message.partition(" - at `")
    steps = re.findall(r"([A-Za-z_]+|\[\.\.\.\])(?:\[(\d+)\])?", path.rstrip("`").removeprefix("$"))
    names = [name for name, _ in steps if name != "[...]"]
    place = ", ".join(
        f"{name} {int(number) + 1}" if number else name for name, number in steps if name != "[...]"
    )
    told = _of_keys(told, keys.get(".".join(names), ())) or _of_values(told, names, keys, values) or told
    return f"{place}: {told}" if place else told


def _of_keys(told: str, known: Sequence[str]) -> str:
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", told):
        name = found.group(1)
        near = get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        return f"there is no key {name!r}; {meant}known are {', '.join(known)}"
    if found := re.fullmatch(r"Object missing required field `(.*)`", told):
        return f"the key {found.group(1)!r} is missing"
    return ""


def _of_values(
    told: str, names: Sequence[str], keys: Mapping[str, Sequence[str]], values: Mapping[str, Sequence[str]]
) -> str:
    if found := re.fullmatch(r"Invalid enum value (.*)", told):
        return f"{found.group(1)} is none of {', '.join(values.get(names[-1], ()))}"
    found = re.fullmatch(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", told)
    if found is None:
        return ""
    expected, got = found.groups()
    if ".".join(names) in keys and {expected, got} == {"array", "object"}:
        table = ".".join(names)
        right, wrong = f"[{table}]", f"[[{table}]]"
        if expected == "array":
            right, wrong = wrong, right
        return f"write {right}, not {wrong}"
    return f"write {KINDS.get(expected, expected)}, not {KINDS.get(got, got)}"
