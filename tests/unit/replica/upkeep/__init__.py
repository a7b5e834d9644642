"""Tests of unit.replica.upkeep."""
