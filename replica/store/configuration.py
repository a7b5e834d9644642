"""The configuration under which a store last voted: the members, their votes and the quorum choices in force.

A quorum of another configuration need not meet those that stored what was acknowledged. So a store notes the configuration before
its first vote, and votes under no other, unless the cluster chose a later one while it ran: then it notes that one whole. Must not know who asks.
"""

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec

from ...api_specs.cluster import BadCluster, ClusterDocument, from_json
from ...api_specs.configuration import (
    Configuration,
    check_same_cluster,
    configuration_of,
    difference,
    in_force,
    read_configuration,
    types_in,
)
from . import statements
from .database import Database, Reader, StorageFailed
from .records import damaged, with_sum, without_sum

_WHAT: Final = "the configuration that it voted under"
_VOTED_UNDER: Final = 1
_CHOSEN: Final = 2
_BEFORE: Final = 3
READ_S: Final = 10.0

_log = logging.getLogger(__name__)


def noted_in(database: Database) -> Configuration | None:
    """What the store notes; None when it has never voted. Raises StorageFailed when it is damaged."""
    text = _text_in(database, _VOTED_UNDER)
    try:
        return None if text is None else read_configuration(text)
    except msgspec.DecodeError:
        raise damaged(_WHAT) from None


def chosen_in(database: Database | Reader) -> ClusterDocument | None:
    """The configuration that the store is in, if it was chosen while the cluster ran. Raises StorageFailed when it is damaged."""
    return _document_in(database, _CHOSEN)


def before_in(database: Database) -> ClusterDocument | None:
    """Of a store whose replica became a member while the cluster ran: the last configuration in which it was none. Raises StorageFailed when it is
    damaged."""
    return _document_in(database, _BEFORE)


def _document_in(database: Database | Reader, number: int) -> ClusterDocument | None:
    text = _text_in(database, number)
    try:
        return None if text is None else from_json(msgspec.json.decode(text))
    except (msgspec.DecodeError, BadCluster):
        raise damaged(_WHAT) from None


def in_force_at(file: ClusterDocument, copy: Path) -> ClusterDocument:
    """The cluster file with the configuration that a database notes which nobody writes. Raises StorageFailed."""
    with closing(Reader(copy, READ_S, is_still=True)) as reader:
        chosen = chosen_in(reader)
    return file if chosen is None else in_force(file, chosen)


def latest_at(file: ClusterDocument, folders: Iterable[Path], database: str) -> ClusterDocument:
    """The cluster file with the latest configuration that a store in these folders notes, of replicas that do not run. One that cannot be read is left out,
    as its replica says why, and so is one of another cluster: names may be the same, but each configuration knows all who were members before it."""
    found = [file]
    for folder in folders:
        path = folder / database
        has_log = path.with_name(database + "-wal").exists()  # Else nothing may be made beside it.
        with (
            suppress(StorageFailed, sqlite3.Error, BadCluster),
            closing(Reader(path, READ_S, is_still=not has_log)) as reader,
        ):
            meta = dict(reader.all(statements.GET_META))
            if (meta.get("cluster"), meta.get("replica")) == (file.name, folder.name):
                chosen = chosen_in(reader)
                if chosen is not None and file.votes.keys() <= {*chosen.votes, *chosen.former_members}:
                    check_same_cluster(file, chosen)
                    found.append(in_force(file, chosen))
    return max(found, key=lambda each: each.number)


def note(database: Database, document: ClusterDocument) -> None:
    """Note the document's configuration, as part of the transaction at hand."""
    database.write(statements.PUT_CONFIGURATION, (_VOTED_UNDER, *with_sum(configuration_of(document).text())))
    if document.number:
        _note_chosen(database, document)


def follow(database: Database, document: ClusterDocument) -> None:
    """Note that it is in this configuration, which was chosen while the cluster ran, as part of the transaction at hand. A store that has never voted
    notes no more than that: it asks the others before it votes, also after a restart."""
    if noted_in(database) is None:
        _note_chosen(database, document)
    else:
        note(database, document)


def note_before(database: Database, document: ClusterDocument) -> None:
    """Note that the replica becomes a member after this configuration, as part of the transaction at hand."""
    _note_document(database, _BEFORE, document)


def _note_chosen(database: Database, document: ClusterDocument) -> None:
    _note_document(database, _CHOSEN, document)


def _note_document(database: Database, number: int, document: ClusterDocument) -> None:
    text = msgspec.json.encode(document, order="deterministic").decode()
    database.write(statements.PUT_CONFIGURATION, (number, *with_sum(text)))
    _raise_schema(database)


def _raise_schema(database: Database) -> None:
    """From now on only releases read the store that know of configurations which follow one another."""
    newest = str(statements.SCHEMA_NEWEST)
    if database.one(statements.GET_SCHEMA) != (newest,):
        database.write(statements.PUT_META, ("schema", newest))
        _log.info(
            "the store has schema %s from now on, for the configuration changes while the cluster runs: releases that know schema %d alone refuse it",
            newest,
            statements.SCHEMA_OLDEST,
        )


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
        "the new ones may miss what was acknowledged. Rules and votes change while the cluster runs, by `quorate change`; if that was done "
        "while this replica was down, start it once with the file of before: it goes on by itself"
    )


def _text_in(database: Database | Reader, number: int) -> str | None:
    rows = database.all(statements.GET_CONFIGURATION, (number,))
    return str(without_sum(_WHAT, rows[0])[0]) if rows else None
