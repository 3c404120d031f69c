"""Thin skins over the engine: validate, call it, frame what it says. No decisions."""
