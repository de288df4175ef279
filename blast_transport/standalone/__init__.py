"""`python -m blast_transport`: sending and receiving without a controller and without a configuration file."""
