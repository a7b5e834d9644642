"""Tests of unit.measurement.faults."""
