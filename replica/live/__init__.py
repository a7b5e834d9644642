"""The live page at `/ui` and what it asks for."""
