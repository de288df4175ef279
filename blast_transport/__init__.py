"""The data plane on the hosts: reliable multicast. It knows no controller."""
