"""The configuration file: its sections, what contradicts itself in it, and the files that it names.

Start with `config.py`; `contradictions.py` compares sections, `reload.py` knows what may change at run time.
"""
