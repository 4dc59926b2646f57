"""Who may do what at the coordinator: roles, actions, API tokens, tokens of an identity provider, the gateway's tokens.

The door of the room offers what is used outside; files of the room import the file they need.
"""
