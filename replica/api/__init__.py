"""The HTTP endpoints: objects and leases, the replica protocol, administration."""
