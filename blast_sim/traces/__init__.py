"""Traces of clusters as multicasts and shuffles between racks."""
