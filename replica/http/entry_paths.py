"""Paths of a dictionary's entries: the key in one is decoded once, and what is served has the name under which it is kept.

Owns what an escaped slash is: part of a key, and nothing elsewhere. Must not know who asks.
"""

from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from ...adts.keys import key_name
from .problems import Refusal

_DICTIONARIES: Final = "/v1/dictionaries/"
_ENTRIES: Final = 4
_KEY: Final = 5
"""Of the parts of `/v1/dictionaries/NAME/entries/KEY/…`."""


def kept_path(path: str, raw: bytes) -> str:
    """`path` with the name of the key that it has. `raw` is the same before it was decoded. Raises Refusal, and BadName for a key that is not
    allowed."""
    parts = raw.split(b"/") if path.startswith(_DICTIONARIES) else [raw]
    is_entry = len(parts) > _KEY and unquote_to_bytes(parts[_ENTRIES]) == b"entries"
    key = parts[_KEY] if is_entry else b""
    if is_entry:
        parts[_KEY] = b""
    if b"%2f" in b"/".join(parts).lower():
        # Decoded it would stand between parts of the path, where whoever stands in front saw one part.
        raise Refusal(
            "no-such-path", "%2F is no / between the parts of a path: only a dictionary's key has one"
        )
    if not key:
        return path
    try:
        parts[_KEY] = key_name(unquote_to_bytes(key).decode()).encode()
    except UnicodeDecodeError:
        raise Refusal("bad-name", "the key in the path is no UTF-8: escape the bytes of UTF-8") from None
    return unquote(b"/".join(parts).decode("ascii"))
