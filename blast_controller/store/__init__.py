"""The journal: what the controller means to do and has done, durable before any device hears of it."""
