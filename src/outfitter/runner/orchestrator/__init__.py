"""How an agent starts agents: an MCP server inside the runner, on loopback, that works through the coordinator's API.

The door of the room offers what is used outside; files of this folder import the file they need.
"""
