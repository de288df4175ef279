"""The parts of `benchmarks/transfers/soak.py`: a lab under honest and hostile load, and the checks at its end."""
