"""What the standard interfaces have in common: checks of what they are made from, and why they are not copied."""

from typing import Any, NoReturn, TypeVar

Kind = TypeVar("Kind")


def refuse_copy(self: object) -> NoReturn:
    """The `__reduce__` of what stays with the client, and so with the process, that it was made for."""
    kind = type(self).__name__
    raise TypeError(
        f"a {kind} is neither pickled nor copied: it belongs to this process's client. Where it is needed, make another "
        f"{kind} of the same name, with a client of its own"
    )


def checked_client(client: Kind, kind: type[Kind], maker: str) -> Kind:
    """`client` itself; TypeError for what is none, a path for instance."""
    if not isinstance(client, kind):
        raise TypeError(
            f"the client is {client!r}, of type {type(client).__name__}: give what {maker}(…) makes"
        )
    return client


def checked_maxsize(maxsize: Any) -> int:
    """`maxsize` itself; TypeError for what is no whole number."""
    if not isinstance(maxsize, int):
        raise TypeError(
            f"maxsize is {maxsize!r}, of type {type(maxsize).__name__}: use a whole number, or 0 for no bound"
        )
    return maxsize
