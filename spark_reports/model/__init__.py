"""What a report speaks of: the input's contract, run documents, quorum choices, figures and their intervals. Pure."""
