"""Recording a stay at an MCP server and playing it back. What is for others is in the door of ``testing``."""
