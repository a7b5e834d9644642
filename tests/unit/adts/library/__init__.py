"""Bundled types."""
