"""The drivers of optical switches: their steps, and the bare exchanges beside them. Start with `executor_steps.py`."""
