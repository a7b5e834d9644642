"""What may be forgotten, decided for each abstract data type, with the argument why it is safe.

Owns horizons, tombstones and the retry window as decisions over values. Must not know where entries are stored or
when it is called: the store does the deleting, and time arrives as a timestamp.
"""
