"""Tests of quorate.adts, a file for each of its modules."""
