"""What was shown at a moment, as named rows of JSON: what pages are sent and what the flight recorder keeps."""
