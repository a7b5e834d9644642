"""Tests of unit.client_sdk.adapters."""
