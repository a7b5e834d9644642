"""Tests of unit.replica.service."""
