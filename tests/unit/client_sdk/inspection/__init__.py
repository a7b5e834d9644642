"""Tests of unit.client_sdk.inspection."""
