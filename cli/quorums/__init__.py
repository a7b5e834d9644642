"""`quorate quorums`: data types, choices, plans."""
