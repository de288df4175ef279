"""Common parts of the simulators: errors, tables, options, files, stored cells."""
