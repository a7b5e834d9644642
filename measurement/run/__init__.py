"""A measured run: replicas, load, failures, probes, and the folder that records them."""
