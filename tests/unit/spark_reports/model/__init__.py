"""Tests of unit.spark_reports.model."""
