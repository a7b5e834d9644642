"""Tests of unit.simulation.scenarios."""
