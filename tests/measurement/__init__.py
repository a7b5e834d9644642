"""Tests of quorate.measurement."""
