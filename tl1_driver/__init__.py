"""TL1: codec, session, asyncio client, dialects, and an emulated optical switch."""
