"""Tests of unit.replica.live."""
