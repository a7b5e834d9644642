"""Tests on real processes: replicas on loopback, SIGKILL, and the clients that users have."""
