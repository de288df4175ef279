"""What every transport is, at either end."""
