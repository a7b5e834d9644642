"""Clients that others' tools generate from the committed OpenAPI document, used on live replicas."""
