"""Tests of quorate.integrations."""
