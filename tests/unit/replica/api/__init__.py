"""Tests of unit.replica.api."""
