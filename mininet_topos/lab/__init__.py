"""A running lab: network, optical switch, controllers and agents, from its beginning to its complete removal.

Start with `lab.py`. `registry.py` knows which labs this machine has, `cleanup.py` removes one whatever state its owner
left it in, `prompt.py` is what an operator types. Imports `mininet_topos.topology` and `mininet_topos.kernel`.
"""
