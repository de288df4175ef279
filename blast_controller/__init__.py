"""The controller: a pure core and the shells around it."""
