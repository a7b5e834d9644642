"""Tests of unit.replica.store."""
