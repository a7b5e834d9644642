"""Tests of unit.cli.bench."""
