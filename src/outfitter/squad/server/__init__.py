"""The team's state as an MCP server: read-only, in both protocol eras, on stdin and stdout or over HTTP.

The door of the room offers what is used outside; files of this folder import the file they need.
"""
