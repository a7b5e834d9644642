"""Tests of sim.schedules."""
