"""The live page as it lies in the package: its files, and where the pieces of its picture stand."""
