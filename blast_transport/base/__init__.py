"""What everything stands on: errors with whose fault they are, threads, the precedence of packets, what is reported."""
