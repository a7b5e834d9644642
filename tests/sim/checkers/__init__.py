"""Tests of sim.checkers."""
