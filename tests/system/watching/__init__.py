"""Tests of system.watching."""
