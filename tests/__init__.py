"""The tests: a folder for each room, and what concerns them all."""
