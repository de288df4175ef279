"""The emulated fabric: its plan, and the nodes and links that are built from it.

`plan.py` is pure data: start there. `build.py` makes a Mininet topology of a plan, `optical_fabric.py` moves packets
like splitters and cross-connects move light, `optical_switch.py` serves a switch of one of the kinds in
`switch_kinds.py`. Imports `mininet_topos.kernel`.
"""
