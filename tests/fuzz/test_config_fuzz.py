"""The configuration parser on 20,000 texts or more: each is a configuration or one ConfigError."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import blast_controller
from blast_controller.config import Config, ConfigError, parse
from tests.support.fuzzing import inputs

TEXTS = inputs(20_000)

EXAMPLE = (Path(blast_controller.__file__).parent / "example.toml").read_text()
COMPACT = "\n".join(line.split("#")[0].rstrip() for line in EXAMPLE.splitlines() if line.split("#")[0].strip())
SNIPPETS = [
    "[[rack]]", "[rack]", "[[splitter]]", "[controller]", "[fabric]", "[openflow]", "name = ", "optical_ports = ",
    "hosts = [{", "}]", "= 1", "= -1", "= 0", "= 1e400", "= nan", "= -inf", "= true", "= ''", '= """', "= 1979-05-27",
    "= 07:32:00", "= [[[[", "= 0xffffffffffffffffffff", "dscp = ", "group_network = '239.0.0.0/8'", "\u00e9", "\x00",
    "\ud7ff", "'''", ".", "a.b.c = 1", "outputs = [1, 2, 3]", "light_rate_gbps", "{}", ",", "\t", "\r\n",
]  # fmt: skip
LINES = COMPACT.splitlines()


def mutation(rng: random.Random) -> str:
    """The example with a few characters, words or lines changed."""
    lines = list(LINES)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, rng.choice(LINES))
            case 2:
                lines[at] = lines[at].replace(
                    str(rng.randrange(10)), rng.choice(["", "0", "-1", "70000", "1.5", "'x'"]), 1
                )
            case 3:
                cut = rng.randint(0, len(lines[at]))
                lines[at] = lines[at][:cut] + rng.choice(SNIPPETS) + lines[at][cut:]
            case 4:
                cut = rng.randint(0, len(lines[at]))
                lines[at] = (
                    lines[at][:cut]
                    + chr(rng.choice([0, 10, 34, 39, 44, 61, 91, 93, 125, 0x2028]))
                    + lines[at][cut + 1 :]
                )
            case 5:
                lines[at] = lines[at].replace("=", "= " + rng.choice(SNIPPETS[10:20]).lstrip("= ") + " #", 1)
        if not lines:
            break
    return "\n".join(lines)


def garbage(rng: random.Random) -> str:
    """Pieces of TOML in any order, or any characters."""
    if rng.random() < 0.5:
        return "\n".join(rng.choice(SNIPPETS + LINES) for _ in range(rng.randint(0, 12)))
    return "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xD800)])) for _ in range(rng.randint(0, 60)))


@pytest.mark.parametrize("kind", [mutation, garbage])
@pytest.mark.parametrize("seed", range(4))
def test_only_configurations_and_config_errors(kind, seed):
    rng = random.Random(f"{kind.__name__}/{seed}")
    accepted = 0
    for _ in range(TEXTS // 8):
        text = kind(rng)
        try:
            config = parse(text)
        except ConfigError as error:
            assert str(error).strip()
        else:
            assert isinstance(config, Config)
            config.build_fabric()
            config.core_settings()
            accepted += 1
    assert accepted or kind is garbage, "mutations are mild enough that some are still configurations"
