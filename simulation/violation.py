"""The error of a broken promise, for those who watch a world and those who judge its history."""


class Violation(AssertionError):
    """A promise was broken."""
