"""Tests of unit.replica.telemetry."""
