"""Tests of unit.cli.playground."""
