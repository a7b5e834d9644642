"""Planning: cost, load, latency and availability of choices, and the search for those that no other beats. Pure."""
