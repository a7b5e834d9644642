"""Which tests run one after the other in one worker of pytest-xdist, and which of them begin first.

The tests of a file stay together, so that what they share is started once and not by every worker; some files stay together,
for they share more than that, or would disturb each other. What takes long begins first, or else one worker would be at it
when the others have nothing left to do. A test holds the tables against the files that there are.

pytest-xdist's own groups (`xdist_group`) are lost without a word under pytest 9.2 (pytest-xdist issue 1386), and know no order.
"""

from typing import Final

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    # Measured runs are held to times: two at once would be in each other's way.
    "measured": (
        "tests/measurement/test_closed_ways.py",
        "tests/measurement/test_ends_of_runs.py",
        "tests/measurement/test_measured_runs.py",
    ),
    # One session for all: each worker would start a Java machine of its own.
    "spark": (
        "tests/spark_reports/test_engine.py",
        "tests/spark_reports/test_parquet_files.py",
        "tests/spark_reports/test_probe_jobs.py",
        "tests/spark_reports/test_report.py",
        "tests/spark_reports/test_session.py",
    ),
}
APART: Final = frozenset(
    {
        "tests/adts/test_dependency.py",
        "tests/docs/test_checkouts.py",
        "tests/docs/test_pages.py",
        "tests/integrations/test_celery_worker.py",
        "tests/test_structure.py",
    }
)
"""Files whose tests share nothing, and take long together: each test goes by itself."""
SECONDS: Final[dict[str, int]] = {
    "tests/cli/test_demo.py": 60,
    "tests/cli/test_doctor.py": 50,
    "tests/cli/test_local_cluster.py": 50,
    "tests/cli/test_object_commands.py": 60,
    "tests/cli/test_quorums_plan.py": 60,
    "tests/docs/test_checkouts.py": 60,
    "tests/docs/test_pages.py": 15,
    "tests/e2e/test_backups.py": 30,
    "tests/e2e/test_dying_client.py": 30,
    "tests/e2e/test_faulty_links.py": 40,
    "tests/e2e/test_folders.py": 40,
    "tests/e2e/test_full_disk.py": 20,
    "tests/e2e/test_guarded.py": 60,
    "tests/e2e/test_live_page.py": 50,
    "tests/e2e/test_live_page_looks.py": 20,
    "tests/e2e/test_live_page_text.py": 20,
    "tests/e2e/test_long_queue.py": 60,
    "tests/e2e/test_replacing.py": 20,
    "tests/e2e/test_rotating_kills.py": 25,
    "tests/e2e/test_shared_queue.py": 20,
    "tests/e2e/test_small_files.py": 45,
    "tests/e2e/test_stopping.py": 40,
    "tests/e2e/test_systems.py": 35,
    "tests/e2e/test_tombstones.py": 20,
    "tests/integrations/test_celery_worker.py": 20,
    "tests/integrations/test_huey_consumer.py": 40,
    "tests/integrations/test_kombu_transport.py": 30,
    "tests/measurement/test_closed_ways.py": 20,
    "tests/measurement/test_ends_of_runs.py": 60,
    "tests/measurement/test_measured_runs.py": 25,
    "tests/spark_reports/test_cluster.py": 60,
    "tests/spark_reports/test_engine.py": 60,
    "tests/spark_reports/test_probe_jobs.py": 60,
    "tests/test_image.py": 55,
    "tests/test_prometheus.py": 35,
    "tests/test_structure.py": 30,
    "tests/test_systemd.py": 35,
}
"""What files take, or each single test of those in APART, on a machine of two cores. Only the order counts."""

_GROUP_OF: Final = {path: group for group, paths in GROUPS.items() for path in paths}


def unit_of(nodeid: str) -> str:
    """The name of all that runs in one worker with a test: its group, its file, or the test alone."""
    path = nodeid.partition("::")[0]
    return nodeid if path in APART else _GROUP_OF.get(path, path)


def seconds_of(nodeid: str) -> int:
    """What the unit of a test takes together; 0 where nobody noted it, for that is little."""
    path = nodeid.partition("::")[0]
    group = _GROUP_OF.get(path)
    return sum(SECONDS.get(each, 0) for each in (GROUPS[group] if group else (path,)))
