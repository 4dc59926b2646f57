"""The fast lane: usual tool calls go from socket to socket, everything else goes to the ASGI application as before.

``doors`` reads headers once, ``envelopes`` reads as little of a body as possible, ``tickets`` keeps what calls of one
tool have in common, ``upstreams`` holds connections, ``calls`` is one call, ``protocol`` is where uvicorn meets it.
"""
