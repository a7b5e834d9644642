"""A library's keys, of any text, as keys of a dictionary. Pure.

Quorate's keys are 1 to 200 characters of a small set. What fits is left as it is, so that it can be read in a trace; the
rest is escaped as `=` and two hex digits for each byte of UTF-8, and what is too long then is named by its digest. Two
different keys never get the same name (but for a collision of SHA-256).
"""

import re
from hashlib import sha256
from typing import Final

from ..api_specs.limits import NAME_CHARS_MAX

_ESCAPED: Final = re.compile(r"[^A-Za-z0-9._~@:+-]|^\.")
EMPTY: Final = "=empty"
DIGEST: Final = "=sha256="
"""No escape looks like these two: neither `em` nor `sh` is a hex number."""


def key_name(key: str | bytes) -> str:
    """The dictionary's key for a library's key. Raises UnicodeError for bytes that are no UTF-8, and for lone surrogates."""
    text = key.decode() if isinstance(key, bytes) else key
    name = _ESCAPED.sub(lambda found: "".join(f"={byte:02X}" for byte in found[0].encode()), text)
    if len(name) > NAME_CHARS_MAX:
        return DIGEST + sha256(text.encode()).hexdigest()
    return name or EMPTY
