"""Tests of unit.cli.objects."""
