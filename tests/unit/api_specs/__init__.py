"""Tests of quorate.api_specs, a file for each of its modules."""
