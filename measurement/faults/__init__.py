"""Faults on the network: proxies that delay, cut and refuse; ports that are held until they are listened on."""
