"""Tests of unit.spark_reports.figures."""
