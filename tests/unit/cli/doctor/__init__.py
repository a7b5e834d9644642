"""Tests of unit.cli.doctor."""
