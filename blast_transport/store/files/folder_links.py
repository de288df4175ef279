"""Symbolic links of a folder: whether each leads to something in it, by whatever other links it goes."""

from __future__ import annotations

from collections.abc import Mapping

from blast_transport.base.errors import UnsafeNameError
from blast_transport.store.files.file_names import shown

_MAX_STEPS = 1000
"""Parts of names that are looked at for one link: the links of a folder may lead through each other."""
_MAX_STEPS_TOGETHER = 2_000_000
"""For all links: about two seconds. A table of 32 MiB has room for 30,000 links of 500 parts each."""


def check_links(links: Mapping[str, str]) -> None:
    """Raise UnsafeNameError unless all of these links, path to target, stay in the folder of their paths.

    No path leads through a link itself, as in a checked table. A target is resolved as the system does it, so that `..`
    behind a link is the parent of that link's target. A missing name counts as a folder, because it may become one.
    """
    steps = 0
    for path, target in links.items():
        steps += _follow(path, target, links)
        if steps > _MAX_STEPS_TOGETHER:
            raise UnsafeNameError("the links of the folder lead through too many names together")


def _follow(path: str, target: str, links: Mapping[str, str]) -> int:
    """Return how many parts were looked at."""
    if target.startswith("/"):
        raise UnsafeNameError(f"the link {shown(path)} leads out of the folder: {shown(target)} is an absolute path")
    place = path.split("/")[:-1]
    to_go = target.split("/")[::-1]
    for steps in range(_MAX_STEPS):
        if not to_go:
            return steps
        part = to_go.pop()
        if part == "..":
            if not place:
                raise UnsafeNameError(f"the link {shown(path)} leads out of the folder, to {shown(target)}")
            place.pop()
        elif part not in ("", "."):
            place.append(part)
            further = links.get("/".join(place))
            if further is not None:
                if further.startswith("/"):
                    raise UnsafeNameError(f"the link {shown(path)} leads out of the folder, to {shown(target)}")
                place.pop()
                to_go += further.split("/")[::-1]
    raise UnsafeNameError(f"the link {shown(path)} goes in a circle, or through too many others")
