"""Tests of unit.measurement.run."""
