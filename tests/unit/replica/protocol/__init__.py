"""Tests of unit.replica.protocol."""
