"""Tests of unit.quorums.choices."""
