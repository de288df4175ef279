"""Who gets light next, on what, and what stays lit in between."""
