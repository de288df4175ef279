"""What differs between vendors of optical switches."""
