"""Tests of unit.replica.http."""
