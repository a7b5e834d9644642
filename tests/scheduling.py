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
        "tests/unit/measurement/run/test_closed_ways.py",
        "tests/unit/measurement/run/test_ends_of_runs.py",
        "tests/unit/measurement/run/test_measured_runs.py",
    ),
    # One session for all: each worker would start a Java machine of its own.
    "spark": (
        "tests/unit/spark_reports/spark/test_engine.py",
        "tests/unit/spark_reports/input/test_parquet_files.py",
        "tests/unit/spark_reports/spark/test_hadoop.py",
        "tests/unit/spark_reports/spark/test_probe_jobs.py",
        "tests/unit/spark_reports/spark/test_jobs.py",
        "tests/unit/spark_reports/spark/test_outcome_jobs.py",
        "tests/unit/spark_reports/test_following.py",
        "tests/unit/spark_reports/figures/test_notebook_page.py",
        "tests/unit/spark_reports/test_period_of_report.py",
        "tests/unit/spark_reports/test_report.py",
        "tests/unit/spark_reports/test_report_of_days.py",
        "tests/unit/spark_reports/figures/test_frames.py",
        "tests/unit/spark_reports/spark/test_session.py",
    ),
}
APART: Final = frozenset(
    {
        "tests/unit/adts/test_dependency.py",
        "tests/docs/test_checkouts.py",
        "tests/docs/test_pages.py",
        "tests/unit/integrations/test_celery_worker.py",
        "tests/project/test_structure.py",
        "tests/sim/test_changing.py",
        "tests/sim/test_clocks.py",
        "tests/sim/test_leases.py",
        "tests/sim/test_own.py",
        "tests/sim/test_sim.py",
    }
)
"""Files whose tests share nothing, and take long together: each test goes by itself."""
SECONDS: Final[dict[str, int]] = {
    "tests/unit/cli/demo/test_command.py": 30,
    "tests/unit/cli/doctor/test_command.py": 50,
    "tests/unit/cli/cluster/test_local_cluster.py": 20,
    "tests/unit/cli/objects/test_commands.py": 60,
    "tests/unit/cli/quorums/test_plan.py": 60,
    "tests/docs/test_checkouts.py": 150,
    "tests/docs/test_pages.py": 40,
    "tests/generated_clients/test_clients_page.py": 130,
    "tests/generated_clients/test_generated_clients.py": 110,
    "tests/generated_clients/test_own_types.py": 25,
    "tests/paper/test_against_specification.py": 30,
    "tests/sim/planted/test_planted.py": 140,
    "tests/sim/test_burying.py": 25,
    "tests/sim/test_changing.py": 40,
    "tests/sim/test_clocks.py": 5,
    "tests/sim/test_full.py": 25,
    "tests/sim/test_leases.py": 30,
    "tests/sim/test_faults.py": 30,
    "tests/sim/test_outbox.py": 30,
    "tests/sim/test_own.py": 40,
    "tests/sim/test_sim.py": 140,
    "tests/sim/test_systems.py": 25,
    "tests/sim/test_weak.py": 30,
    "tests/system/cluster/test_changing.py": 70,
    "tests/system/cluster/test_configurations.py": 40,
    "tests/system/cluster/test_members.py": 60,
    "tests/system/cluster/test_standing_rules.py": 50,
    "tests/system/cluster/test_upgrading.py": 60,
    "tests/system/cluster/test_wrong_clocks.py": 40,
    "tests/system/failures/test_busy.py": 30,
    "tests/system/failures/test_damaged_files.py": 20,
    "tests/system/failures/test_own_types.py": 25,
    "tests/system/failures/test_full_replicas.py": 30,
    "tests/system/objects/test_costs.py": 20,
    "tests/system/objects/test_deleting.py": 30,
    "tests/system/watching/test_metrics_of_failures.py": 35,
    "tests/unit/integrations/test_kombu_refusals.py": 40,
    "tests/system/failures/test_backups.py": 30,
    "tests/system/failures/test_dying_client.py": 30,
    "tests/system/failures/test_faulty_links.py": 40,
    "tests/system/cluster/test_folders.py": 40,
    "tests/system/failures/test_full_disk.py": 20,
    "tests/system/cluster/test_guarded.py": 60,
    "tests/system/watching/test_live_page.py": 50,
    "tests/system/watching/test_live_page_looks.py": 20,
    "tests/system/watching/test_live_page_parts.py": 20,
    "tests/system/watching/test_live_page_text.py": 20,
    "tests/system/watching/test_playground.py": 15,
    "tests/system/watching/test_probe_log.py": 20,
    "tests/system/objects/test_long_queue.py": 60,
    "tests/system/failures/test_replacing.py": 20,
    "tests/system/failures/test_rotating_kills.py": 25,
    "tests/system/objects/test_shared_queue.py": 20,
    "tests/system/objects/test_small_files.py": 60,
    "tests/system/failures/test_stopping.py": 40,
    "tests/system/objects/test_systems.py": 35,
    "tests/system/objects/test_tombstones.py": 20,
    "tests/unit/integrations/test_celery_worker.py": 40,
    "tests/unit/integrations/test_huey_consumer.py": 40,
    "tests/unit/integrations/test_kombu_transport.py": 30,
    "tests/unit/measurement/run/test_closed_ways.py": 20,
    "tests/unit/measurement/run/test_ends_of_runs.py": 40,
    "tests/unit/measurement/run/test_measured_runs.py": 25,
    "tests/unit/replica/http/test_connections.py": 30,
    "tests/unit/replica/http/test_fuzzed_surfaces.py": 45,
    "tests/unit/replica/server/test_direct.py": 20,
    "tests/unit/spark_reports/test_cluster.py": 170,
    "tests/unit/spark_reports/test_following.py": 20,
    "tests/unit/spark_reports/figures/test_notebook_page.py": 15,
    "tests/unit/spark_reports/test_period_of_report.py": 60,
    "tests/unit/spark_reports/test_report.py": 40,
    "tests/unit/spark_reports/test_report_of_days.py": 20,
    "tests/unit/spark_reports/spark/test_engine.py": 90,
    "tests/unit/spark_reports/spark/test_hadoop.py": 20,
    "tests/unit/spark_reports/spark/test_probe_jobs.py": 30,
    "tests/unit/spark_reports/spark/test_session.py": 20,
    "tests/system/deployment/test_image.py": 250,
    "tests/system/deployment/test_prometheus.py": 35,
    "tests/project/test_structure.py": 30,
    "tests/system/deployment/test_systemd.py": 35,
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
