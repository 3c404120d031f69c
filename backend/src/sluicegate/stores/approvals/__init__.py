"""The ledger: who decided what, which calls have run, and the trail of it (A1, A10)."""
