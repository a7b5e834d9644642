"""Measuring a live cluster: a plan of faults and workloads, what happens to it, and what is written down of both.

Owns the plan (`plan`, `schedule`: pure), what carries it out (`conductor`, `proxies`, `load`, `prober`) and the files
that docs/reference/measurements.md describes (`recorder`, `run_folder`, `parquet`). Must not know how a cluster is started: it comes
in as the protocol `conductor.Replicas`.
"""
