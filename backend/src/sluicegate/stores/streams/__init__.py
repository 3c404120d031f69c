"""Running turns, user events and shared rates: in memory, or on a Valkey or Redis server."""
