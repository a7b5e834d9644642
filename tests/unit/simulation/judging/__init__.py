"""Tests of unit.simulation.judging."""
