"""A library's keys, empty ones and those of any length, as keys of a dictionary. Pure.

What is a key of a dictionary is left as it is; the rest is named by its digest. Two different keys never become the same (but
for a collision of SHA-256).
"""

from hashlib import sha256
from typing import Final

from ..adts.keys import key_name
from ..adts.types.catalogue import BadName

DIGEST: Final = "=sha256="


def library_key(key: str | bytes) -> str:
    """The dictionary's key for a library's key. Raises UnicodeError for bytes that are no UTF-8, and for lone surrogates."""
    text = key.decode() if isinstance(key, bytes) else key
    digest = DIGEST + sha256(text.encode()).hexdigest()
    try:
        key_name(text)
    except BadName:
        return digest
    return digest if text.startswith(DIGEST) else text
