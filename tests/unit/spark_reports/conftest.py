"""One Spark session for all tests that ask for it; they are skipped, with the reason, where Java is missing.

`tests.scheduling` keeps them in one worker.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from quorate.spark_reports.model.errors import JavaMissing
from quorate.spark_reports.spark import session as sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA: Final = "-XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=400m -Xms1g -Xmn600m"
"""The quick compiler's own 48 MB are full after a few reports, and from then on all is interpreted. Collecting garbage beside the
work costs a tenth of it, and has little to collect; with all of the heap at once it is seldom collected."""
PLAIN: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""Each plan is for a handful of rows, and run once: to compile it, or to plan it again at every stage, takes longer. Sessions as
they are shipped are those of `test_cluster`, and of the commands' tests."""


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the session that all Spark tests share: starting one takes five seconds."""
    small = {name: f"{value} {JAVA}" for name, value in sessions.SMALL_SETTINGS.items()}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sessions, "SMALL_SETTINGS", small)
            with sessions.local_session("local[2]") as session:
                for name, value in PLAIN.items():
                    session.conf.set(name, value)
                yield session
    except JavaMissing as missing:
        pytest.skip(str(missing))
