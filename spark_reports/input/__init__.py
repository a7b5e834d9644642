"""Reading what was measured: runs, probes, traces and answers of Prometheus, from JSON lines, CSV and Parquet."""
