"""Rules on the ToR switches: a Ryu application on os-ken or ryu.

Start with `driver.py`, its interface to the core; `session.py` is the state machine of one ToR, and only `framework.py`
names Ryu. Imports the core's model and `serving`.
"""
