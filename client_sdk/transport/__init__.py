"""The I/O of a front end: the driver on an event loop, connections to replicas, HTTP and TLS."""
