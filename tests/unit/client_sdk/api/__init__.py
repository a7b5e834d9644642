"""Tests of unit.client_sdk.api."""
