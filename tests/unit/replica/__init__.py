"""Tests of quorate.replica, a file for each of its modules."""
