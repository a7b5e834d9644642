"""A store of days: what a prober's samples of each day come to, kept so that a report reads no sample twice."""
