"""One Spark session for all tests marked `spark`; those tests are skipped, with the reason, where Java is missing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quorate.spark_reports.errors import JavaMissing
from quorate.spark_reports.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that need Spark in one worker, for each worker would start a Java machine of its own."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Give the session that all Spark tests share: starting one takes five seconds."""
    try:
        with local_session("local[2]") as session:
            yield session
    except JavaMissing as missing:
        pytest.skip(str(missing))
