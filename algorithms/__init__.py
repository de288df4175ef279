"""Pure algorithms: allocation, splitter trees, multicast trees. They know no controller, no clock and no socket."""
