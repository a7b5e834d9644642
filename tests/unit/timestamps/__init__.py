"""Tests of quorate.timestamps, a file for each of its modules."""
