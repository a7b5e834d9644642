"""Tests of unit.replica.access."""
