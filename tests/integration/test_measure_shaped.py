"""Rates that are measured are those that interfaces were shaped to, in network namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.measured_hosts import BLAST, host_process
from tests.support.shaped_hosts import Plant, Shape, plant

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("tc") is None, reason="needs root and iproute2"),
]

SECRET = "0123456789abcdef" * 2
DATA = 1448 / 1514
"""Of what is on the wire, with TCP's time stamps and without what Ethernet adds around its frames."""
NEAR = 0.15
TRIES = 4

SHAPE = Shape(
    links={(0, 1): 100, (0, 2): 40, (0, 3): 60, (1, 2): 20, (1, 3): 80, (2, 1): 90, (2, 3): 30, (3, 1): 70, (3, 2): 50},
    out={0: 120, 1: 200, 2: 60, 3: 200},
    into={1: 110, 2: 200, 3: 90},
)

SHORT_PROBES = """
import json, sys
from pathlib import Path
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret, read_secret
from blast_transport.measuring.flows import HERE, measure_link
target, dial = ("h1", sys.argv[1], 9095), dialer(SharedSecret(read_secret(Path(sys.argv[2]))))
print(json.dumps([measure_link(HERE, target, dial) for _ in range(9)]))
"""


@contextmanager
def measuring(folder: Path, count: int, shape: Shape) -> Iterator[Plant]:
    """Hosts of which all but number 0, the root, have an agent."""
    (folder / "secret").touch(mode=0o600)
    (folder / "secret").write_text(SECRET)
    with plant(count, shape) as made, ExitStack() as stack:
        for number in range(1, count):
            listen = f'[agent]\nlisten = "{made.address(number)}:9095"\n[access]\nsecret_file = "{folder}/secret"'
            stack.enter_context(host_process(folder, f"h{number}", listen, made.inside(number)))
        yield made


def measure(made: Plant, folder: Path, *more: str) -> dict[str, object]:
    to = ",".join(f"h{number}={made.address(number)}" for number in range(1, made.count))
    words = ["measure", "--hosts", to, "--root", "h0", "--secret-file", str(folder / "secret"), "--json", *more]
    done = subprocess.run(made.inside(0, *BLAST, *words), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def near(found: float, shaped_mbps: float) -> bool:
    return abs(found / (shaped_mbps * 1e6 * DATA) - 1) <= NEAR


def is_faster(found: float, shaped_mbps: float) -> bool:
    return found / (shaped_mbps * 1e6 * DATA) - 1 > NEAR


def wanted(shape: Shape, start: int, end: int) -> float:
    return min(shape.links[start, end], shape.out[start], shape.into[end])


def shaped_rates(shape: Shape) -> dict[str, float]:
    """What each link and each access link was made for, in Mbit/s."""
    rates = {f"h{start} to h{end}": wanted(shape, start, end) for start, end in shape.links}
    for host, out in shape.out.items():
        links = sum(wanted(shape, *link) for link in shape.links if link[0] == host)
        rates[f"out of h{host}"] = min(out, links)
    for host, into in shape.into.items():
        links = sum(wanted(shape, *link) for link in shape.links if link[1] == host)
        rates[f"into h{host}"] = min(into, links)
    return rates


def measured_rates(found: dict) -> dict[str, float]:
    """The same in bit/s, as they were found."""
    links = {f"{start} to {end}": rate for start, end, rate in found["links"]}
    access = {
        f"{words} {host}": rate
        for words, way in (("out of", "out"), ("into", "in"))
        for host, rate in found[way].items()
    }
    return links | access


def test_links_and_access_links_are_as_fast_as_they_were_made(tmp_path):
    shaped = shaped_rates(SHAPE)
    slow = set(shaped)
    with measuring(tmp_path, 4, SHAPE) as made:
        for _ in range(TRIES):
            found = measured_rates(measure(made, tmp_path))
            assert found.keys() >= shaped.keys()
            assert not {name: found[name] for name, rate in shaped.items() if is_faster(found[name], rate)}
            # A machine that does something else is slow, and never faster than it was made to be.
            slow = {name for name in slow if not near(found[name], shaped[name])}
            if not slow:
                return
    raise AssertionError(f"slower than they were made each time: {sorted(slow)}")


@pytest.mark.parametrize("rate", [10, 50, 200])
def test_a_short_probe_of_one_link_comes_near_too(tmp_path, rate):
    with measuring(tmp_path, 2, Shape(links={(0, 1): rate})) as made:
        command = made.inside(0, sys.executable, "-c", SHORT_PROBES, made.address(1), str(tmp_path / "secret"))
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    rates = sorted(json.loads(done.stdout))
    # One of them may meet a moment in which this machine does something else.
    assert near(rates[len(rates) // 2], rate), rates


def test_a_link_without_any_rate_worth_the_name_is_dead(tmp_path):
    """So slow that next to nothing comes in time, nor does what acknowledges the other direction."""
    with measuring(tmp_path, 3, Shape(links={(1, 2): 0.008})) as made:
        to = ",".join(f"h{number}={made.address(number)}" for number in range(1, made.count))
        words = ["measure", "--hosts", to, "--root", "h0", "--secret-file", str(tmp_path / "secret"), "--json"]
        done = subprocess.run(made.inside(0, *BLAST, *words), capture_output=True, text=True, check=False)
    links = {(start, end): rate for start, end, rate in json.loads(done.stdout)["links"]}
    assert links["h1", "h2"] < 100_000 and min(links["h0", "h1"], links["h0", "h2"]) > 1e6
