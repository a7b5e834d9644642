"""Tests of `quorate.client_sdk.protocol.decisions`."""
