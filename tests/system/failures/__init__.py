"""Tests of system.failures."""
