"""The account, which never goes below zero: a Debit that is not covered ends in Overdraft and changes nothing."""

from collections.abc import Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response


class Account:
    """State: the balance, at least zero.

    Debit/Ok does not depend on Credit: more money never makes a covered debit wrong. Debit/Overdraft does, and because
    outcomes share the initial quorum, the operation Debit must see both.
    """

    name: Final = "account"
    kinds: Final[Mapping[str, Kind]] = {"Credit": Kind.BLIND, "Debit": Kind.DECIDE, "Balance": Kind.OBSERVE}
    changes: Final[frozenset[EventClass]] = frozenset({"Credit/Ok", "Debit/Ok"})
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        "Credit/Ok": frozenset(),
        "Debit/Ok": frozenset({"Debit/Ok"}),
        "Debit/Overdraft": frozenset({"Credit/Ok"}),
        "Balance/Ok": frozenset({"Credit/Ok", "Debit/Ok"}),
    }
    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
        "Credit": {"amount": (1, 2)},
        "Debit": {"amount": (1, 2)},
        "Balance": {},
    }
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {"Balance/Ok": ("balance",)}

    def initial(self) -> int:
        """An empty account."""
        return 0

    def step(self, state: int, invocation: Invocation) -> tuple[int, Response]:
        """Credit(amount), Debit(amount), amounts above zero, or Balance()."""
        match invocation.operation:
            case "Credit":
                return state + invocation.args[0], Response("Ok")
            case "Debit":
                left = state - invocation.args[0]
                return (left, Response("Ok")) if left >= 0 else (state, Response("Overdraft"))
            case "Balance":
                return state, Response("Ok", (state,))
        raise ValueError(
            f"an account has no operation {invocation.operation!r}: use Credit, Debit or Balance"
        )
