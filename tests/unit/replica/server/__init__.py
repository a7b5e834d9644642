"""Tests of unit.replica.server."""
