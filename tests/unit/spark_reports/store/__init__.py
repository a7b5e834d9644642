"""Tests of unit.spark_reports.store."""
