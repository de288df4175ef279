"""What every carrier is, at either end."""
