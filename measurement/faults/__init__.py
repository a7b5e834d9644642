"""Faults on the network: proxies that cut and refuse; ports that are held until they are listened on."""
