"""Pictures of the Blast paper's evaluation.

Start with `figures.py`; `paper_claims.py` has the paper's statements as predicates, `measuring/` the programs that
measure.
"""
