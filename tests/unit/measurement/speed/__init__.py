"""Tests of unit.measurement.speed."""
