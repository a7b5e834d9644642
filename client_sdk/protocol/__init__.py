"""The front end without I/O: calls and replies in, messages and outcomes out. Pure.

`front_end` is the whole machine. `operations` has the steps of each operation, `decisions` what the owner of an object
does, `core` what both stand on: values, rounds of messages, the log cache, time and random numbers.
"""
