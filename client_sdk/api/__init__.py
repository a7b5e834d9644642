"""The public client: handles for asyncio and for blocking callers, leases, histories, connecting."""
