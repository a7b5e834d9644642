"""Traces by OpenTelemetry, where they are asked for."""
