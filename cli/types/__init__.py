"""`quorate types`: data types of one's own, before they are relied on."""
