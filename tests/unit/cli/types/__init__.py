"""Tests of unit.cli.types."""
