"""One member of a cluster at work: it answers batches from its store, and has a front end of its own."""
