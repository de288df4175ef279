"""The lab: Mininet topologies with an emulated optical fabric, and the demo."""
