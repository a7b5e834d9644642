"""Tests of quorate.cli, a file for each of its modules."""
