"""The Thrift server with deferred replies."""
