"""What each check of `quorate doctor` comes to."""

from msgspec import Struct


class Check(Struct, frozen=True):
    """One finding; `fix` says what to do when it is not `ok`."""

    what: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True

    @property
    def mark(self) -> str:
        """One word for the finding."""
        return "ok" if self.ok else "broken" if self.needed else "missing"
