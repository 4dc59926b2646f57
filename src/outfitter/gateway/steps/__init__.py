"""The steps of a tool call, one per file, each of the same shape; their order is written in ``pipeline``."""
