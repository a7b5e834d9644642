"""What operations and decisions stand on: values, rounds of messages, the log cache, time, counters. Pure."""
