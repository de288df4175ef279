"""From what the policy decides to light: whom it hears of, and how parts get what it gives them."""
