"""A long run of every decoder of what comes from outside: `python -m tests.fuzz [--inputs 1000000] [--coverage]`.

Prints what became of the inputs, and, with `--coverage`, which share of the decoders' branches they reach; ends with
status 1 where that is below what is wanted. Seeds are fixed: a failure names its input and comes again.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage

WANTED_PERCENT = 95.0
ROOT = Path(__file__).parent.parent.parent
MODULES = (
    "blast_controller/config*.py",
    "blast_controller/rpc/connections/frames.py",
    "blast_controller/rpc/connections/messages.py",
    "blast_controller/rpc/convert.py",
    "blast_transport/store/folder_links.py",
    "blast_transport/store/folder_table.py",
    "blast_transport/wire/codec.py",
    "blast_transport/wire/fields.py",
    "tl1_driver/codec.py",
    "tl1_driver/scanner.py",
    "tl1_driver/messages.py",
    "tl1_driver/payload.py",
    "tl1_driver/alarms.py",
    "tl1_driver/dialects/*.py",
)
DECODING = {
    "blast_transport/store/folder_table.py": ("table_bytes", "decode", "_entries", "_text", "check_path"),
    "blast_transport/wire/codec.py": ("_checked", "_decode_digests", "_decode_nack", "_decode_repair"),
    "blast_transport/wire/fields.py": ("from_json", "_value", "_finite", "_tuple"),
    "blast_controller/rpc/convert.py": ("to_request", "to_extension", "to_page_query", "_optional_float"),
    "blast_controller/rpc/connections/messages.py": (
        "ServiceCodec.read_header",
        "ServiceCodec.read_call",
        "ServiceCodec._read_arguments",
        "check_required_fields",
    ),
    "tl1_driver/payload.py": ("unquote", "parameters", "split_blocks"),
    "tl1_driver/alarms.py": ("read_rows", "_row"),
    "tl1_driver/dialects/base.py": ("Dialect.alarms", "Dialect._place", "power"),
    "tl1_driver/dialects/calient.py": (
        "Calient.circuits",
        "Calient.powers",
        "Calient._port_rows",
        "Calient._states",
        "Calient.ports_named",
        "_state",
    ),
    "tl1_driver/dialects/glimmerglass.py": (
        "Glimmerglass.circuits",
        "Glimmerglass.powers",
        "Glimmerglass._connection_rows",
        "Glimmerglass._circuit",
        "Glimmerglass.ports_named",
        "_number",
    ),
    "tl1_driver/dialects/polatis.py": (
        "Polatis.introduce",
        "Polatis.circuits",
        "Polatis.powers",
        "Polatis._circuit",
        "Polatis._port",
        "Polatis.ports_named",
    ),
}
"""Of modules that encode as well, the functions that decode."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each decoder")
    parser.add_argument("--only", default="", help="decoders whose name has this in it")
    parser.add_argument("--coverage", action="store_true", help="report the branches reached (several times slower)")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if not options.coverage:
        run_all(options.inputs, options.only)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        measured = coverage.Coverage(branch=True, include=[str(ROOT / m) for m in MODULES], data_file=None)
        # Before anything of ours is imported, so that definitions count as reached.
        with measured.collect():
            run_all(options.inputs, options.only)
        report = Path(directory, "coverage.json")
        measured.json_report(outfile=str(report), pretty_print=False)
        return 1 if print_coverage(json.loads(report.read_text())) else 0


def run_all(count: int, only: str) -> None:
    """Fuzz one decoder after the other, and print a line for each as soon as it is done."""
    from tests.fuzz.test_config_fuzz import CONFIG
    from tests.fuzz.test_folder_fuzz import TABLES
    from tests.fuzz.test_measuring_fuzz import CAPACITIES, MESSAGES
    from tests.fuzz.test_network_fuzz import NETWORK
    from tests.fuzz.test_rpc_messages import BODY, STREAM
    from tests.fuzz.test_tl1_fuzz import TRANSCRIPTS
    from tests.fuzz.test_transport_wire import STREAM as CONTROL
    from tests.support.fuzzing import fuzz

    print(f"{'decoder':<16}{'inputs':>10}{'mutations':>11}{'seeds found':>13}{'CPU seconds':>13}  outcomes")
    for decoder in (STREAM, BODY, TRANSCRIPTS, CONFIG, CONTROL, MESSAGES, NETWORK, CAPACITIES, TABLES):
        if only not in decoder.name:
            continue
        print(f"fuzzing {decoder.name} with {count} inputs", file=sys.stderr, flush=True)
        run = fuzz(decoder, count)
        found = ", ".join(f"{name}: {number}" for name, number in run.outcomes.most_common())
        line = f"{decoder.name:<16}{run.inputs:>10}{run.mutated:>11}{run.seeds:>13}{run.seconds:>13.1f}  {found}"
        print(line, flush=True)


def print_coverage(report: dict[str, Any]) -> list[str]:
    """Print a line for each module; those that are below what is wanted."""
    lacking = []
    out = io.StringIO()
    for name, statements, branches, percent, missing in rows(report):
        print(f"{name:<42}{statements:>11}{branches:>10}{percent:>9.1f}  {missing}", file=out)
        if percent < WANTED_PERCENT:
            lacking.append(name)
    print(f"\n{'module':<42}{'statements':>11}{'branches':>10}{'percent':>9}  lines that no input reached")
    print(out.getvalue(), end="")
    if lacking:
        print(f"below {WANTED_PERCENT} %: {', '.join(lacking)}")
    return lacking


def rows(report: dict[str, Any]) -> Iterator[tuple[str, int, int, float, str]]:
    """Name, statements, branches, percent of both reached, and what was not, of every module."""
    for file, found in sorted(report["files"].items()):
        name = str(Path(file).resolve().relative_to(ROOT))
        wanted = DECODING.get(name)
        parts = [found] if wanted is None else [found["functions"][one] for one in wanted]
        sums = {key: sum(p["summary"][key] for p in parts) for key in KEYS}
        total = sums["num_statements"] + sums["num_branches"]
        reached = sums["covered_lines"] + sums["covered_branches"]
        missing = sorted(line for part in parts for line in part["missing_lines"])
        yield (
            name + (" (decoding)" if wanted else ""),
            sums["num_statements"],
            sums["num_branches"],
            100.0 * reached / total if total else 100.0,
            " ".join(map(str, missing)),
        )


KEYS = ("num_statements", "num_branches", "covered_lines", "covered_branches")

if __name__ == "__main__":
    sys.exit(main())
