"""Background tasks of a replica: deleting history, announcing the store to others, catching up, read repair, probes."""
