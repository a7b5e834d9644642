"""TLS of replicas: certificates, handshakes in turns, records in pieces, and what waits to be sent."""
