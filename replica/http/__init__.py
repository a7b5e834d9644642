"""HTTP itself: connections and their bounds, the gate that each request passes, problem documents, TLS."""
