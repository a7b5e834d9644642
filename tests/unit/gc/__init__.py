"""Tests of quorate.gc, a file for each of its modules."""
