"""A program with the protocol of `rack-fabric`, but no simulation; the scenario's table `fake` controls it."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = """\
#!{python} -IS
import json, os, sys, time

KEYS = {{"seed", "duration_ns", "topology", "flows", "fake"}}
FLOW_KEYS = {{"name", "source", "to", "frame_bytes", "rate_gbps"}}


def refuse(sentence, *path, status=2):
    print("a line that is no JSON", file=sys.stderr)
    print(json.dumps({{"error": sentence, "path": path}}), file=sys.stderr)
    sys.exit(status)


command, file, *options = sys.argv[1:]
assert command in ("check", "run") and file == "-"
scenario = json.load(sys.stdin)
fake = scenario.get("fake", {{}})
for key in scenario:
    if key not in KEYS:
        refuse(f"unknown field `{{key}}`.", key)
for place, flow in enumerate(scenario.get("flows", [])):
    for key in flow:
        if key not in FLOW_KEYS:
            refuse(f"unknown field `{{key}}`", "flows", place, key)
    if not 0 < flow["rate_gbps"] <= 100:
        refuse("a flow has more than 0 and up to 100 Gb/s", "flows", place, "rate_gbps")
if "flows" not in scenario:
    refuse("missing field `flows`")
if command == "check":
    print(json.dumps({{"memory_bytes": fake.get("memory_bytes", 1000), "events": scenario["duration_ns"]}}))
    sys.exit()

if "log" in fake:
    with open(fake["log"], "a") as log:
        log.write(f"{{os.getpid()}}\\n")
if "--trace" in options:
    trace = open(options[options.index("--trace") + 1], "wb", buffering=0)
    trace.write(b"BLASTRF1" + (1).to_bytes(4, "little") + (32).to_bytes(4, "little"))
if "--progress" in options:
    print(json.dumps({{"done": scenario["duration_ns"] // 2, "of": scenario["duration_ns"]}}), file=sys.stderr)
    sys.stderr.flush()
time.sleep(fake.get("seconds", 0))
if "stderr" in fake:
    print(fake["stderr"], file=sys.stderr)
if "error" in fake:
    refuse(fake["error"], status=1)
if "signal" in fake:
    os.kill(os.getpid(), fake["signal"])
if "status" in fake:
    sys.exit(fake["status"])
if "answers" in fake:
    print(fake["answers"])
    sys.exit()
flows = [
    {{
        "name": flow["name"],
        "destinations": [
            {{"copies": 7, "gbps": flow["rate_gbps"], "leaf": leaf, "port": port, "mean_delay_ns": 1.5, "all": [1, 2]}}
            for leaf, port in flow["to"]
        ],
    }}
    for flow in scenario["flows"]
]
copies = 7 * sum(len(flow["destinations"]) for flow in flows)
results = {{"seed": scenario.get("seed", 1), "duration_ns": scenario["duration_ns"], "delivered_copies": copies}}
print(json.dumps({{**results, "flows": flows, "series": {{}}}}))
"""


def write_fake(folder: Path) -> Path:
    """Put the program into a folder."""
    path = folder / "rack-fabric"
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    return path
