"""Log records: their form, repeated troubles, audit lines; probe logs."""
