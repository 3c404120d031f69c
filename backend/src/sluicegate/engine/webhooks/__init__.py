"""Webhooks: the events of approvals, delivered to the endpoints of other systems."""
