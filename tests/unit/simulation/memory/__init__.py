"""Tests of unit.simulation.memory."""
