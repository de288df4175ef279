"""What fabric to buy: prices, hardware, the programme that chooses, static trees."""
