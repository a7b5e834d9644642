"""Tests of unit.cli.reports."""
