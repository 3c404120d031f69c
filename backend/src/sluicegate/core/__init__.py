"""The rules of a chat turn, free of any input or output."""
