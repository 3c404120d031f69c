"""The AI SDK's protocol: chunks, messages, requests and their framing; no chat rules."""
