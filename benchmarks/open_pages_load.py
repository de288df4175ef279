"""Live pages as a browser has them open, and a Prometheus that scrapes: for `open_pages.py`, in a process of its own.

Reads all that is sent and draws nothing: what the page itself costs is the browser's.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass

import httpx
from child import serve_counts, tell

SCRAPED_EVERY = 5.0
"""Seconds; Prometheus' own default is 60, and the example that Blast ships has 5."""


@dataclass
class Counts:
    """What has come so far."""

    pages: int = 0
    events: int = 0
    megabytes: float = 0.0
    scrapes: int = 0


async def page(url: str, counts: Counts) -> None:
    """One page."""
    async with httpx.AsyncClient(timeout=None) as client, client.stream("GET", f"{url}/stream") as answer:
        counts.pages += 1
        async for piece in answer.aiter_raw():
            counts.events += piece.count(b"\nevent: ") + piece.startswith(b"event: ")
            counts.megabytes += len(piece) / 1e6


async def scrape(url: str, counts: Counts) -> None:
    """Ask for the metrics again and again."""
    async with httpx.AsyncClient() as client:
        while True:
            started = time.monotonic()
            (await client.get(f"{url}/metrics")).raise_for_status()
            counts.scrapes += 1
            await asyncio.sleep(max(0.0, SCRAPED_EVERY - (time.monotonic() - started)))


async def main(address: str, pages: int) -> None:
    """Open the pages, and count until standard input ends."""
    counts, url = Counts(), f"http://{address}"
    tasks = [asyncio.create_task(page(url, counts)) for _ in range(pages)]
    tasks.append(asyncio.create_task(scrape(url, counts)))
    while counts.pages < pages:
        await asyncio.sleep(0.05)
    tell({"pages": counts.pages})
    await serve_counts(counts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
