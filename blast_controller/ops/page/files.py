"""The files of the live page, read from the package once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import NamedTuple

PAGE = "index.html"
"""The file served as `/`; all others are served below `/static/` by their names here."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""Permissions of the page in a browser: its own scripts and requests to its server (CSP level 3, Trusted Types)."""

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file as it is served; `tag` is an ETag of what is in it (RFC 9110, 8.8.3)."""

    body: bytes
    content_type: str
    tag: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files by name; directories in names end with a slash."""
    return dict(_files(files(__package__) / "static", ""))


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, PageFile]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif (kind := _TYPES.get(PurePosixPath(entry.name).suffix)) is not None:
            body = entry.read_bytes()
            yield prefix + entry.name, PageFile(body, kind, f'"{sha256(body).hexdigest()[:32]}"')
