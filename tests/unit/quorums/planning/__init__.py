"""Tests of unit.quorums.planning."""
