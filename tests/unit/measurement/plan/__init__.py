"""Tests of unit.measurement.plan."""
