"""Tests of unit.spark_reports.spark."""
