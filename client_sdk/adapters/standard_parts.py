"""What the standard interfaces have in common: checks of what they are made from, and why they are not copied."""

from typing import Any, NoReturn, TypeVar

from ...api_specs.cluster import ClusterDocument
from ..errors import BadInput

Kind = TypeVar("Kind")


def refuse_copy(self: object) -> NoReturn:
    """The `__reduce__` of what stays with the client, and so with the process, that it was made for."""
    kind = type(self).__name__
    raise TypeError(
        f"a {kind} is neither pickled nor copied: it belongs to this process's client. Where it is needed, make another "
        f"{kind} of the same name, with a client of its own"
    )


def checked(value: Any, kind: type[Kind], name: str, remedy: str) -> Kind:
    """`value` itself; TypeError, which says what to do, where it is not of that kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}, of type {type(value).__name__}: {remedy}")
    return value


def checked_client(client: Any, kind: type[Kind], maker: str) -> Kind:
    """`client` itself; TypeError for what is none, a path for instance."""
    return checked(client, kind, "the client", f"give what {maker}(…) makes")


def checked_maxsize(maxsize: Any) -> int:
    """`maxsize` itself; TypeError for what is no whole number."""
    return checked(maxsize, int, "maxsize", "use a whole number, or 0 for no bound")


def check_atomic(document: ClusterDocument, full_name: str) -> None:
    """BadInput for an object of eventual consistency: what an interface of others decides by a look would rest on old answers."""
    if document.choice_of(full_name).is_weak:
        raise BadInput(
            f"{full_name} is of eventual consistency, and this interface decides by what it reads, so that it would lose what it promises: use the "
            "client's own methods, or give the object no such rule"
        )
