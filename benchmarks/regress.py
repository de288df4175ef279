"""Compare two commits of this repository: for each quantity, the ratio of HEAD to BASE with a 90 % interval.

Each commit runs its own benchmark scripts in a separate worktree and environment. `regress/eras.py` maps their output
to common rows, so that old commits remain measurable after scripts and options are renamed. The runs of the two commits
alternate, and so does the order within a pair. A ratio compares the two runs of one pair. The table has the median of
the ratios, with an interval by ranks that assumes no distribution: 90 % need at least five pairs, whose minimum and
maximum cover 93.75 %. With fewer pairs the table has the minimum and maximum with the probability that they cover the
median, and no verdict. A ratio above 1 means that HEAD is better: times and costs are inverted, rates are not. A row is
`worse` if the upper end of its interval is below 0.97, and `better` if the lower end is above 1 / 0.97.

    .venv/bin/python benchmarks/regress.py 6c053f2                          # all rows; at most 15 minutes after setup
    .venv/bin/python benchmarks/regress.py 6c053f2 77a4610 --only cycles --pairs 15

Run it on an idle machine. Transports need root, for network namespaces. The first run with a commit sets it up, which
takes minutes, needs the network, and as root installs the Debian packages that the commit's `scripts/setup` names.
Worktrees stay in the cache (--cache) for the next run; `git worktree remove --force DIR` removes one.

Exit status:
  0    no row is worse
  1    a row is worse
  2    wrong input, a failed run, or a row named by --only that cannot be measured (but 1 if a row is worse)
  130  interrupted; the rows that have readings are printed
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.regress.command import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
