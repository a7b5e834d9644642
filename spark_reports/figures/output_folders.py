"""A report's folders of tables: made aside, then put in the place of a former report's, so that no older table is left.

Owns the exchange, and what may be taken away for it: only what a report writes. Anything else in such a folder is refused.
"""

from collections.abc import Collection
from typing import Final

from ..input.files import files_of
from ..model.errors import ReportError
from ..model.places import Place

SPARK_TABLES: Final = ("operations", "intervals", "links", "seen", "up_sets", "rejected")
"""The folders within `parquet`, whichever engine wrote them."""


class OutputFolder:
    """One such folder: `aside` is written to, `install` puts it in its place, `discard` forgets it.

    A process that ends between the two renames of `install` leaves the former tables beside their place, and none in it.
    """

    def __init__(self, place: Place, names: Collection[str]) -> None:
        self.place = place
        self.aside = place.with_name(place.name + ".new")
        self._former = place.with_name(place.name + ".old")
        self._names = frozenset(names)

    def prepare(self) -> None:
        """Take away what a report that was cut off left aside; ReportError where there are files of somebody else."""
        for folder in (self.place, self.aside, self._former):
            self._check_own(folder)
        self.discard()

    def install(self) -> None:
        """Put what was written aside in its place; where nothing was, there is none any more. OSError where it cannot be."""
        if self.place.exists():
            self.place.rename(self._former)
        if self.aside.exists():
            self.aside.rename(self.place)
        self.discard()

    def discard(self) -> None:
        """Take away all that is not in its place."""
        for folder in (self.aside, self._former):
            files_of(folder).remove(folder)

    def _check_own(self, folder: Place) -> None:
        if not folder.exists():
            return
        try:
            foreign = sorted({path.name for path in folder.iterdir()} - self._names)
        except OSError as error:
            raise ReportError(
                f"{folder} cannot be read ({error}); take it away or give another --out"
            ) from error
        if foreign:
            raise ReportError(
                f"{folder} holds {foreign[0]}, which no report wrote and which a new one would take away; "
                "move it elsewhere or give another --out"
            )
