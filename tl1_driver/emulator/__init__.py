"""An optical circuit switch that speaks TL1 over TCP."""
