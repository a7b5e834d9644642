"""Stores that have voted, and gone on to a later configuration, without a replica that runs."""

from pathlib import Path

from quorate.api_specs.cluster import ClusterDocument
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.store.store import Store


def go_on(folder: Path, file: ClusterDocument, replica: str, later: ClusterDocument) -> None:
    """As a replica that has voted by its file, and was told of the later one."""
    opened = open_folder(folder, file, replica)
    assert opened.database is not None
    store = Store(opened.database)
    store.note_configuration(file)
    store.follow_configuration(later)
    store.commit()
    store.close()
    opened.close()
