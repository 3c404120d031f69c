"""The words of the AI SDK: chunks, messages, requests and their framing, without decisions."""
