"""Tests of unit.spark_reports.input."""
