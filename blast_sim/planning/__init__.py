"""What fabric to buy: prices, hardware, the program that chooses, static trees."""
