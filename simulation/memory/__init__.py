"""A whole replica in memory: the shipped machine over a store that loses in a crash what was not committed."""
