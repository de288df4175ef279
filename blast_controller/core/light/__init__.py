"""Light trees: structure, power budget, fault localization, and the device state of a group."""
