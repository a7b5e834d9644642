"""Tests of quorate.client_sdk, a file for each of its modules."""
