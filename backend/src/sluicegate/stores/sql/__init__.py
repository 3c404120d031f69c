"""The database of sessions, approvals, leases and chats: SQLite or PostgreSQL, and our tables."""
