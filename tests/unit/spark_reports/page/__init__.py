"""Tests of unit.spark_reports.page."""
