"""How clients are connected: the server, frames and Thrift messages, and what each connection costs at most."""
