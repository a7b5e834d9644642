"""Tests of unit.cli.cluster."""
