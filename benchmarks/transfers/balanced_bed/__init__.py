"""Balanced multicast on emulated sites: plans of the methods, agents, a sender, and unshaped trees."""
