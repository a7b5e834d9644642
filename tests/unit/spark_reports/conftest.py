"""One Spark session for all tests that ask for it; they are skipped, with the reason, where Java is missing.

`tests.scheduling` keeps them in one worker.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports.model.errors import JavaMissing
from quorate.spark_reports.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the session that all Spark tests share: starting one takes five seconds."""
    try:
        with local_session("local[2]") as session:
            yield session
    except JavaMissing as missing:
        pytest.skip(str(missing))
