"""The replica without I/O: what it answers to each request, and what it must write first. Pure."""
