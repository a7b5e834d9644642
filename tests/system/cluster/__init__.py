"""Tests of system.cluster."""
