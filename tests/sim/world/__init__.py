"""Tests of sim.world."""
