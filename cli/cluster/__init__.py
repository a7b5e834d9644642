"""Commands about clusters and replicas: init, up, serve, status, backup, tokens."""
