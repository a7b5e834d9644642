"""Tests of unit.client_sdk.transport."""
