"""Tests of quorate.quorums, a file for each of its modules."""
