"""What a person looks at: the logs of all replicas side by side, and the state of leases. Pure."""
