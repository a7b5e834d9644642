"""Options that several commands have: which cluster or replica, and for how long to try."""

from pathlib import Path
from typing import Annotated

import typer

ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        "-c",
        envvar="QUORATE_CLUSTER",
        metavar="FILE|URL",
        help="The cluster file, or any one replica: its URL or HOST:PORT.",
    ),
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        min=0.01,
        help="Give up after this time; a dequeue after this and --wait. Without it: 5, or the cluster's deadline_s_max where that is less.",
    ),
]
DocumentOption = Annotated[Path, typer.Option("--cluster", "-c", metavar="FILE", help="The cluster file.")]
IdOption = Annotated[str, typer.Option("--id", metavar="ID", help="Which replica of the document, as r1.")]
DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="The replica's data folder.")]
