"""Tests of unit.quorums.systems."""
