"""The data folder of a replica: identity and lock, backups, and a new store in place of a lost one."""
