"""Tests of unit.cli.demo."""
