"""Tests of unit.replica.http.tls."""
