"""Reproduction of the papers: for each a folder with its experiments, its statements as predicates, and its pictures.

blast        optical multicast (Figure 4, allocation, setup) and measurements of our own decisions
balanced     balanced multicast between sites
pipeline     Kascade's pipelines
rack_fabric  multicast in the fabric of a rack

`blast figures` starts here; `saving.py` and `canvas.py` are common to all pictures, and
`blast_sim.replay` uses them, too.
"""
