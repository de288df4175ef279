"""What both servers, of Thrift and of OpenFlow, are made with: places, listeners, TLS."""
