"""Tests of quorate.simulation."""
