"""The aggregates on Spark: sessions, jobs over operations, traces and probes."""
