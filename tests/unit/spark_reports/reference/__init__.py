"""Tests of unit.spark_reports.reference."""
