"""Tests of unit.spark_reports.text."""
