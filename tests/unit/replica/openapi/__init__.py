"""Tests of unit.replica.openapi."""
