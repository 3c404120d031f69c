"""Files of chats, uploads and tool results: stored once and referred to by URI."""
