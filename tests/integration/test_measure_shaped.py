"""Rates that are measured do not exceed those that interfaces were shaped to, in network namespaces."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.measured_hosts import BLAST, host_process
from tests.support.shaped_hosts import Plant, Shape, plant

pytestmark = pytest.mark.lab

SECRET = "0123456789abcdef" * 2
DATA = 1448 / 1514
"""Of what is on the wire, with TCP's time stamps and without what Ethernet adds around its frames."""
NEAR = 0.15
"""A machine that does something else measures less than there is, and never more."""

STARVED = (3, 2)
"""A link over which next to nothing comes in time, nor what acknowledges the other direction."""
SHAPE = Shape(
    links={(0, 1): 100, (0, 2): 40, (0, 3): 60, (1, 2): 20, (1, 3): 80, (2, 1): 90, (2, 3): 30, (3, 1): 70}
    | {STARVED: 0.008},
    out={0: 120, 1: 200, 2: 60, 3: 200},
    into={1: 110, 2: 200, 3: 90},
)


@contextmanager
def measuring(folder: Path) -> Iterator[Plant]:
    """Hosts of which all but number 0, the root, have an agent."""
    (folder / "secret").touch(mode=0o600)
    (folder / "secret").write_text(SECRET)
    with plant(4, SHAPE) as made, ExitStack() as stack:
        for number in range(1, made.count):
            listen = f'[agent]\nlisten = "{made.address(number)}:9095"\n[access]\nsecret_file = "{folder}/secret"'
            stack.enter_context(host_process(folder, f"h{number}", listen, made.inside(number)))
        yield made


def test_measured_rates_do_not_exceed_those_of_the_links(tmp_path):
    with measuring(tmp_path) as made:
        to = ",".join(f"h{number}={made.address(number)}" for number in range(1, made.count))
        words = ["measure", "--hosts", to, "--root", "h0", "--secret-file", str(tmp_path / "secret"), "--json"]
        done = subprocess.run(made.inside(0, *BLAST, *words), capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    rates = {(int(start[1:]), int(end[1:])): rate for start, end, rate in found["links"]}
    assert rates.keys() == SHAPE.links.keys()
    assert rates.pop(STARVED) < 100_000
    for (start, end), rate in rates.items():
        planned = min(SHAPE.links[start, end], SHAPE.out[start], SHAPE.into[end])
        assert 0 < rate <= (1 + NEAR) * planned * 1e6 * DATA
    for way, shaped in (("out", SHAPE.out), ("in", SHAPE.into)):
        assert all(0 < found[way][f"h{host}"] <= (1 + NEAR) * rate * 1e6 * DATA for host, rate in shaped.items())
