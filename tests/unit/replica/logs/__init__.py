"""Tests of unit.replica.logs."""
