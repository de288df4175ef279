"""Common parts of the Thrift, HTTP and OpenFlow servers: places, listeners, TLS.

Start with `listener.py` and `loop_thread.py`, the loop that all servers share.
"""
