"""Keys of dictionaries, of any text, as the names under which replicas keep them, and back. Pure.

A name is 1 to 200 of a few characters of ASCII (`types.catalogue`). A key that fits is its own name. In another one each
byte of what does not fit is escaped as `=` and two upper-case hex digits, and so is an `=` that would read as an escape. A
name that is the escape of a key stands for it, and every other name for itself: names and keys are pairs, one of each.
Text is taken as it is: `é` as one character and as two are two keys.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from .types.catalogue import NAME_PATTERN, BadName

Kept = TypeVar("Kept")

_NAME: Final = re.compile(NAME_PATTERN)
_ESCAPED: Final = re.compile(r"[^A-Za-z0-9._~@=:+-]+|^\.|=(?=[0-9A-F]{2})")
_ESCAPES: Final = re.compile(r"(?:=[0-9A-F]{2})+")
_UNSURE: Final = re.compile(r"=(?:[0-9A-F]{2}|[0-9A-F]?\Z)")
"""Whether this `=` of a key is escaped goes by the rest of the key."""
_CHARS_MAX: Final = 200
_DICTIONARY: Final = "dictionary/"


def key_name(key: str, what: str = "key") -> str:
    """The name under which a key is kept. Raises BadName where there is none: for an empty or a long one, and for half a surrogate pair."""
    _check_text(key, what)
    is_name = _NAME.fullmatch(key) is not None and name_key(key) == key
    return key if is_name else _escaped(key, key, what)


def name_key(name: str) -> str:
    """The key that is kept under a name."""
    if "=" not in name:
        return name
    try:
        key = _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("=", "")).decode(), name)
        is_escape = key != name and key_name(key) == name
    except (UnicodeError, BadName):
        return name
    return key if is_escape else name


def prefix_name(prefix: str) -> str:
    """What the names of all keys that begin with `prefix` begin with; names of other keys may, too. Raises BadName where no key begins so."""
    _check_text(prefix, "prefix")
    return _escaped(_UNSURE.split(prefix, maxsplit=1)[0], prefix, "prefix") if prefix else ""


def by_key(kept: Mapping[str, Kept], prefix: str) -> dict[str, Kept]:
    """What is kept under names, by those of their keys that begin with `prefix`, in the order of the names."""
    keys = ((name_key(name), each) for name, each in kept.items())
    return {key: each for key, each in keys if key.startswith(prefix)}


def as_kept(full: str) -> str:
    """The name of an object, of which a dictionary's key is given as people write it. Raises BadName for a key without a name."""
    dictionary, key = _split(full)
    return dictionary + key_name(key) if key else full


def as_written(full: str) -> str:
    """An object's name with the key of a dictionary as people write it: `as_kept` makes the name of it again."""
    dictionary, key = _split(full)
    return dictionary + name_key(key)


def beginning_kept(full: str) -> str:
    """What the names of objects begin with that begin with `full` as people write them (see `prefix_name`). Raises BadName."""
    dictionary, prefix = _split(full)
    return dictionary + prefix_name(prefix)


def _split(full: str) -> tuple[str, str]:
    """`dictionary/NAME/` and the rest; of another name all, and nothing."""
    end = full.find("/", len(_DICTIONARY)) + 1 if full.startswith(_DICTIONARY) else 0
    return (full[:end], full[end:]) if end else (full, "")


def _escaped(text: str, whole: str, what: str) -> str:
    """The escape of `text`, with which `whole` begins. Raises BadName where that is none, or too long."""
    if not whole:
        raise BadName(f"the {what} is empty: use 1 character or more")
    try:
        name = _ESCAPED.sub(lambda found: "".join(f"={byte:02X}" for byte in found[0].encode()), text)
    except UnicodeEncodeError:
        detail = "has half a surrogate pair, which is no character: take it out"
        raise BadName(f"the {what} {whole[:80]!a} {detail}") from None
    if len(name) > _CHARS_MAX:
        raise BadName(
            f"the {what} {whole[:40] + '…'!r} takes {len(name)} of {_CHARS_MAX} characters: A-Z a-z 0-9 . _ ~ @ = : + - take one "
            "each, and others three for each byte of UTF-8"
        )
    return name


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise BadName(f"the {what} {text!r} is of type {type(text).__name__}: write it as a text")
