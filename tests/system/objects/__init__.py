"""Tests of system.objects."""
