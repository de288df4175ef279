"""Trees of passive splitters: the number of splitters of a group, their choice, and their arrangement.

Counting rule: one fiber is one open leaf; hanging a 1:N splitter on an open leaf turns it into N, so each splitter adds
N - 1. A group of r racks (including the sender's) needs r - 1 leaves, hence the paper's constraints (Blast, section
III-C): m = ceil((r - 2) / (N - 1)) splitters, and r <= k(N + 1) - 2(k - 1) with at most k of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Output = tuple[int, int]
"""(index of a splitter in the tree, number of its output from 0)"""


def splitters_needed(racks: int, fan_out: int) -> int:
    """Return the paper's m_i: the minimum number of splitters of one size for a group (Blast, section III-C).

    Parameters
    ----------
    racks : int
        Racks of the group, including the sender's.
    fan_out : int
        Outputs of each splitter, the N of 1:N, from 2 on.

    Returns
    -------
    int
        ceil((racks - 2) / (fan_out - 1)), 0 for two racks.

    Examples
    --------
    >>> [splitters_needed(racks, 4) for racks in (2, 3, 5, 6, 8, 9)]
    [0, 1, 1, 2, 2, 3]
    """
    return max(0, -((2 - racks) // (fan_out - 1)))


def max_leaves(pool: Mapping[int, int], max_splitters_per_tree: int | None) -> int:
    """Return the maximum number of leaves of one tree from `pool`.

    Parameters
    ----------
    pool : mapping of int to int
        Fan-out to the number of splitters.
    max_splitters_per_tree : int, optional
        The paper's k; None: no limit.

    Returns
    -------
    int
        1 + the sum of (fan_out - 1) over the largest splitters. O(n log n) for n splitters.

    Examples
    --------
    >>> max_leaves({4: 2, 16: 1}, None), max_leaves({4: 2, 16: 1}, 1)
    (22, 16)
    """
    sizes = sorted((fan_out for fan_out, count in pool.items() for _ in range(count)), reverse=True)
    return 1 + sum(fan_out - 1 for fan_out in sizes[:max_splitters_per_tree])


def choose_splitters(
    leaves: int, pool: Mapping[int, int], max_splitters_per_tree: int | None = None, free_outputs: int = 1
) -> tuple[int, ...] | None:
    """Return the sizes of the splitters that turn `free_outputs` open outputs into at least `leaves`.

    Takes the smallest size that covers the need at once, else the largest left; with one size this is the paper's m.

    Parameters
    ----------
    leaves : int
        Leaves that the tree must have.
    pool : mapping of int to int
        Fan-out to the number of splitters.
    max_splitters_per_tree : int, optional
        The paper's k; None: no limit.
    free_outputs : int, optional
        Outputs that are already open; 1 is the root fiber.

    Returns
    -------
    tuple of int, or None
        The fan-out of each splitter, or None if the pool does not suffice.

    Notes
    -----
    O(splitters chosen * sizes). Blast, section III-C, constraint 1.

    Examples
    --------
    >>> choose_splitters(7, {4: 3}), choose_splitters(7, {4: 1}), choose_splitters(7, {4: 3, 16: 1})
    ((4, 4), None, (16,))
    """
    need = leaves - free_outputs
    if need > 0 and free_outputs == 0:
        return None
    left = sorted([fan_out for fan_out, count in pool.items() if count > 0])
    chosen: list[int] = []
    while need > 0:
        if not left:
            return None
        largest = left[-1]
        if largest > need:
            chosen.append(left[bisect_right(left, need)])
            break
        # Take as many of the largest at once as needed until one splitter covers the rest: this function is called very
        # often.
        taken = min(pool[largest], (need - 1) // (largest - 1))
        chosen += [largest] * taken
        need -= taken * (largest - 1)
        if taken == pool[largest]:
            left.pop()
    return None if max_splitters_per_tree is not None and len(chosen) > max_splitters_per_tree else tuple(chosen)


@dataclass(frozen=True, slots=True)
class Shape:
    """A splitter tree without names.

    Parameters
    ----------
    fan_out : tuple of int
        Number of outputs of each splitter, parents first.
    feeds : tuple of (Output or None)
        The output that feeds each splitter; None: the root fiber.
    leaves : tuple of (Output or None)
        The outputs that serve the leaves, shallowest first; None: the root fiber itself, a plain cross-connect.
    """

    fan_out: tuple[int, ...]
    feeds: tuple[Output | None, ...]
    leaves: tuple[Output | None, ...]

    def depth(self, output: Output | None) -> int:
        """Return the number of splitters on the path to an output.

        Parameters
        ----------
        output : Output or None
            An output of the tree; None: the root fiber.

        Returns
        -------
        int
            0 for the root fiber.
        """
        return 0 if output is None else 1 + self.depth(self.feeds[output[0]])


def shallowest(leaves: int, fan_out: Sequence[int]) -> Shape:
    """Return the tree of minimum depth: the largest splitters on top, each on the shallowest open output.

    Parameters
    ----------
    leaves : int
        Number of leaves that are needed; they take the shallowest outputs that are left.
    fan_out : sequence of int
        Fan-out of each splitter; all of them are hung.

    Returns
    -------
    Shape
        The depth is the minimum if no splitter is superfluous.

    Raises
    ------
    ValueError
        If the splitters do not provide enough outputs.

    Notes
    -----
    O(sum of the fan-outs).

    Examples
    --------
    >>> shallowest(7, [4, 4])
    Shape(fan_out=(4, 4), feeds=(None, (0, 0)), leaves=((0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)))
    """
    sizes = sorted(fan_out, reverse=True)
    free_outputs: deque[Output | None] = deque([None])
    feeds: list[Output | None] = []
    for index, size in enumerate(sizes):
        feeds.append(free_outputs.popleft())
        free_outputs.extend((index, output) for output in range(size))
    if len(free_outputs) < leaves:
        raise ValueError(f"{len(free_outputs)} outputs cannot serve {leaves} leaves")
    return Shape(tuple(sizes), tuple(feeds), tuple(list(free_outputs)[:leaves]))
