"""What outlives a turn or a process: streams, approvals, leases and the list of chats."""
