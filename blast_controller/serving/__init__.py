"""Common parts of the Thrift, HTTP and OpenFlow servers: places, listeners, TLS."""
