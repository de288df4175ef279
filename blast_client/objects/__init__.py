"""What programs hand over and get back: as bytes in formats that other tools read, and mapped again, without pickle."""
