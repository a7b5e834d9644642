"""Plans of measured runs: failures, workloads, durations; checked, and turned into a schedule. Pure."""
