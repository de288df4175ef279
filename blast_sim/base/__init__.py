"""What every room of the simulators uses: errors, tables, options, files, cells that are kept."""
