"""Who is there: what each side proves itself by, and how a connection becomes one whose both ends are proved."""
