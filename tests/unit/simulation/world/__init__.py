"""Tests of unit.simulation.world."""
