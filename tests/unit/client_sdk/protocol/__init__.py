"""Tests of unit.client_sdk.protocol."""
