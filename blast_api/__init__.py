__all__ = ["ttypes", "constants", "Blast", "BlastOperator"]
