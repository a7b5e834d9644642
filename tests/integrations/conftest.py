"""Clusters as the tests on real processes have them; huey's own suite with its slow tests, which it asks about at import."""

import os

from tests.e2e.conftest import clusters, pytest_runtest_makereport, shared_cluster, shared_clusters

__all__ = ["clusters", "pytest_runtest_makereport", "shared_cluster", "shared_clusters"]

os.environ["HUEY_SLOW_TESTS"] = "1"
