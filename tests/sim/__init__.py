"""Runs of `simulation`: the command for one seed, soaks, schedules by hand, and mistakes that must be noticed."""
