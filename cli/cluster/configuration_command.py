"""`quorate configuration`: the cluster file as it is in force.

Owns what is said of a configuration beside its document. How that is found, `status` knows; how it is written, `document`.
"""

from typing import Final

from msgspec import to_builtins

from ...api_specs.cluster import ClusterDocument
from ..options import ClusterOption
from ..output import AsJson, answer, reported
from ..quorums.choice_rule import quoted
from .document import DEFAULT_NAME, document_text
from .status import told_document

CHANGING: Final = "# The cluster changes to what stands here. Until it is done, each quorum is one of the old and one of the new.\n"


@reported
def configuration(cluster: ClusterOption = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Print the cluster file in force, also after changes.

    Write it to a new file, as `quorate configuration > new.toml`: the shell
    empties the file behind > before the old one is read.
    """
    document = told_document(cluster)
    told = {"epoch": document.number, "hash": document.hash, "document": to_builtins(document)}
    answer(as_json, told, text_in_force(document).removesuffix("\n"), is_look=True)


def text_in_force(document: ClusterDocument) -> str:
    """The document as a cluster file that says which configuration it is."""
    head = f"# Cluster {quoted(document.name)}, configuration {document.number}.\n"
    return head + ("" if document.former is None else CHANGING) + document_text(document)
