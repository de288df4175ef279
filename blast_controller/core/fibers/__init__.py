"""Looking for broken and swapped fibers with probe frames.

Start with `fiber_survey.py`: rounds of probes for a switch; `fiber_judge.py` draws the conclusions.
"""
