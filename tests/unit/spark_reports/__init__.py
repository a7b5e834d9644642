"""Tests of quorate.spark_reports, a file for each of its modules."""
