"""Commands about objects: queue, register, dict, trace, repair."""
