"""Spans of calls: what they say, which are made, and that they reach a receiver without holding up a call."""
