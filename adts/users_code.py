"""What code of a user's own leaves behind, in words. Pure, but for that code.

It may raise anything, and some of that means more on its way than a mistake: to asyncio a CancelledError is a caller who has gone, to
a generator a GeneratorExit is its own end. So who runs such code lets none of it pass, and tells of it.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

_name: Final = attrgetter("__name__")


def encodable(text: str) -> str:
    """The text with half surrogate pairs written out, as `\\ud800`: no answer could carry them. No subclass, which may have methods of
    its own."""
    return str.encode(text, errors="backslashreplace").decode()


def shown(value: Any, how: Callable[[Any], str] = repr) -> str:
    """The value in words, whatever its `__repr__` or `__str__` does."""
    try:
        return encodable(how(value))
    except BaseException:  # noqa: BLE001 - code of the user's own
        return "something that cannot be shown"


def told(error: BaseException) -> str:
    """An exception's class, and what it says, if anything."""
    name, words = shown(type(error), _name), shown(error, str)
    return f"{name}: {words}" if words else name
