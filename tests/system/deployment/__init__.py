"""Tests of system.deployment."""
