"""The configuration under which a store last voted: the members, their votes and the quorum choices in force.

A quorum of another configuration need not meet those that stored what was acknowledged. So a store notes the configuration before
its first vote, and votes under no other. Must not know who asks.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import (
    Configuration,
    configuration_of,
    difference,
    read_configuration,
    types_in,
)
from . import statements
from .database import Database
from .records import damaged, with_sum, without_sum

_WHAT: Final = "the configuration that it voted under"


def noted_in(database: Database) -> Configuration | None:
    """What the store notes; None when it has never voted. Raises StorageFailed when it is damaged."""
    rows = [_text_of(columns) for columns in database.all(statements.GET_CONFIGURATION)]
    try:
        return read_configuration(rows[0]) if rows else None
    except msgspec.DecodeError:
        raise damaged(_WHAT) from None


def note(database: Database, document: ClusterDocument) -> None:
    """Note the document's configuration, as part of the transaction at hand."""
    database.write(statements.PUT_CONFIGURATION, (1, *with_sum(configuration_of(document).text())))


def note_types(database: Database, document: ClusterDocument) -> None:
    """Note the configuration where it has data types that were not noted, as part of the transaction at hand."""
    noted = noted_in(database)
    if noted is None or types_in(configuration_of(document)) > types_in(noted):
        note(database, document)


def refusal(noted: Configuration, document: ClusterDocument, replica_id: str) -> str | None:
    """Why a store that notes this must not vote under the document; None when nothing speaks against it."""
    found = difference(noted, configuration_of(document))
    if not found:
        return None
    return (
        f"replica {replica_id} has voted under other members or quorum choices, and does not vote under those of this cluster "
        f"document: {found}. Put these lines back as they were, in every copy of the document, and start again: quorums of "
        "the new ones may miss what was acknowledged, so they cannot change once a replica has voted"
    )


def _text_of(columns: Sequence[object]) -> str:
    return str(without_sum(_WHAT, columns)[0])
