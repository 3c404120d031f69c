"""Google ADK agents, streamed to AI SDK useChat clients, with gated tools held for a yes."""
