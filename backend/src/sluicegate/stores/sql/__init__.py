"""The database that everything but streams lies in: SQLite or PostgreSQL, and our tables."""
