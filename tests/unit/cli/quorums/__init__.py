"""Tests of unit.cli.quorums."""
