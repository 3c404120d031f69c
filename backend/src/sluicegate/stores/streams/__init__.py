"""The chunks of turns that run, in this process or on a stream server."""
