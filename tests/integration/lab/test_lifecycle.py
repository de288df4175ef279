"""Labs start, coexist, crash and stop, and leave nothing behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from mininet_topos.kernel.errors import PlanError, ProcessError
from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import bridges_of, down, found_labs, links_of, marked_processes
from mininet_topos.topology import optical_switch
from mininet_topos.topology.plan import LabPlan, preset
from tests.support.waiting import HANGING, at_rest, eventually

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[3]
SMALL = LabPlan(racks=2, hosts_per_rack=1, splitters={2: 1})
DATAPATH = "datapath_type=netdev"
LAB_IN_A_PROCESS = """
import time
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.plan import LabPlan
lab = Lab(LabPlan(racks=4, hosts_per_rack=2), controller=None)
lab.start()
lab.host("r1h1").cmd("sleep 1000 &")
lab.host("r1h2").popen(["sleep", "1000"])
print(lab.id, flush=True)
time.sleep(1000)
"""


def remains(lab):
    return [*marked_processes(lab), *bridges_of(lab), *links_of(lab), *(x for x in registry.known_labs() if x == lab)]


def namespaces():
    seen = set()
    for entry in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            seen.add(entry.readlink())
        except OSError:
            continue
    return seen


@pytest.fixture(scope="module")
def lab():
    """Yield a lab that stays up while other labs start and stop."""
    from mininet_topos.lab.lab import Lab

    with Lab(SMALL, controller=None, agent="127.0.0.1:0") as lab:
        yield lab
        assert lab.net.pingAll(timeout="10") == 0
    assert remains(lab.id) == []


@pytest.fixture
def lab_process():
    """Yield a process that runs a lab of its own, to be killed."""
    with subprocess.Popen([sys.executable, "-c", LAB_IN_A_PROCESS], stdout=subprocess.PIPE, text=True) as process:
        yield process
        labs = registry.labs_built_by(process.pid)
        process.kill()
        for lab in labs:
            down(lab)


def test_down_removes_killed_lab_and_nothing_else(lab_process, lab):
    killed = lab_process.stdout.readline().strip()
    assert killed in found_labs(), "the lab did not start"
    with ExitStack() as held:
        # While it is open, no other lab gets a namespace of the same number.
        for pid in marked_processes(killed):
            held.enter_context(Path(f"/proc/{pid}/ns/net").open("rb"))
        theirs = {Path(f"/proc/{pid}/ns/net").readlink() for pid in marked_processes(killed)} - {
            Path("/proc/self/ns/net").readlink()
        }
        assert len(theirs) == 8 + 2
        lab_process.kill()
        lab_process.wait()
        assert down(killed).bridges == 4
        assert remains(killed) == []
        assert not theirs & namespaces()
    assert lab.net.pingAll(timeout="10") == 0
    again = down(killed)
    assert (again.processes, again.bridges, again.links) == (0, 0, 0)


@pytest.mark.parametrize("processes", [0, 3])
def test_down_removes_lab_killed_during_construction(lab_process, processes):
    """The lab exists from its claim on, which a process reaches at any time on a busy machine."""

    def has_begun():
        labs = registry.labs_built_by(lab_process.pid)
        return labs and len(marked_processes(labs[0])) >= processes

    eventually(lambda: has_begun() or lab_process.poll() is not None, "the lab's begin", within=4 * HANGING)
    lab_process.kill()
    lab_process.wait()
    (lab,) = registry.labs_built_by(lab_process.pid)
    down(lab)
    assert remains(lab) == []


def test_foreign_bridges_do_not_hide_bridges_of_lab(lab):
    """Open vSwitch lists bridges in no order: those without any external id may come before."""
    foreign = [f"x{os.getpid() % 10000}n{n}" for n in range(8)]
    make = [word for name in foreign for word in ("--", "add-br", name, "--", "set", "bridge", name, DATAPATH)]
    try:
        subprocess.run(["ovs-vsctl", *make], check=True)
        assert sorted(bridges_of(lab.id)) == [lab.names.bridge(1), lab.names.bridge(2)]
    finally:
        subprocess.run(["ovs-vsctl", *(w for n in foreign for w in ("--", "--if-exists", "del-br", n))], check=True)


def test_down_ends_running_owner_process(lab_process):
    lab = lab_process.stdout.readline().strip()
    assert lab in found_labs()
    down(lab)
    assert lab_process.wait(HANGING) != 0
    assert remains(lab) == []


def test_optical_switch_has_higher_priority_than_host_processes(lab):
    assert os.getpriority(os.PRIO_PROCESS, lab.optical_switch.agent_pid) == optical_switch.NICENESS
    assert int(lab.host("r1h1").cmd("nice")) == os.getpriority(os.PRIO_PROCESS, 0)


def test_failed_start_leaves_nothing():
    from mininet_topos.lab.lab import Lab

    lab = Lab(SMALL, agent=None, controller=lambda config: ["sh", "-c", f"test -s {config} && echo no >&2; exit 7"])
    with pytest.raises(ProcessError, match="status 7: no"):
        lab.start()
    assert remains(lab.id) == []


def test_bridges_start_with_controller_and_only_lab_rules(lab):
    bridge = lab.names.bridge(1)

    def ask(*words):
        return subprocess.check_output(["ovs-vsctl", "--bare", *words], text=True).split()

    assert ask("get", "Bridge", bridge, "fail_mode", "datapath_type") == ["secure", "netdev"]
    assert ask("get-controller", bridge) == [f"tcp:{lab.openflow}"]
    assert ask("--columns=max_backoff", "find", "Controller", f'target="tcp:{lab.openflow}"') == ["1000", "1000"]
    rules = subprocess.check_output(["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", bridge], text=True)
    cookies = re.findall(r"cookie=(0x[0-9a-f]+)", rules)
    assert set(cookies) == {"0x7061636b65740001"}
    port = lab.plan.rack_plans[0].optical_ports[0].port
    assert ask("get", "Interface", lab.names.optical_at_tor(1, 1), "ofport") == [str(port)]


def test_lab_supports_thirty_two_racks(make_lab):
    lab = make_lab(preset("wide"))
    assert len(bridges_of(lab.id)) == 32
    assert "0% packet loss" in lab.host("r1h1").cmd("ping -c2 -i0.2 10.0.32.1")


def test_tl1_agent_connects_circuits_and_restarts_dark(lab):
    answer = tl1(lab.switch_address, "ent-crs-fiber::10001,20002:1;")
    assert "COMPLD" in answer
    assert light_from_1_to_2(lab) == 20
    assert "DENY" in tl1(lab.switch_address, "ent-crs-fiber::10001,20001:2;")
    assert light_from_1_to_2(lab) == 20
    address = lab.switch_address
    lab.optical_switch.stop_agent()
    assert light_from_1_to_2(lab) == 20
    lab.optical_switch.start_agent()
    assert lab.switch_address == address
    assert light_from_1_to_2(lab) == 0


def test_lab_start_fails_if_switch_address_is_in_use():
    from mininet_topos.lab.lab import Lab

    with socket.create_server(("127.0.0.1", 0)) as taken:
        lab = Lab(SMALL, agent=f"127.0.0.1:{taken.getsockname()[1]}", controller=None)
        with pytest.raises(ProcessError, match="cannot listen"):
            lab.start()
    assert remains(lab.id) == []


def test_lab_reports_dead_controller_and_ends():
    blast = str(Path(sys.executable).with_name("blast"))
    up = subprocess.Popen(
        [blast, "lab", "up", "--racks", "2", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lab = json.loads(up.stdout.readline())["lab"]
        (controller,) = (
            pid for pid in marked_processes(lab) if b"\0controller\0run\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        os.kill(controller, signal.SIGKILL)
        assert up.wait(HANGING) == 1
        assert json.loads(up.stderr.read())["error"].startswith("the controller ended with status -9")
        assert remains(lab) == []
    finally:
        up.kill()
        up.communicate()
        for left in registry.labs_built_by(up.pid):
            down(left)


def test_links_reject_options_that_need_netem(lab):
    from mininet_topos.topology.nodes import BlastLink

    for option in ("loss", "delay", "jitter", "max_queue_size"):
        with pytest.raises(PlanError, match=option):
            BlastLink(lab.host("r1h1"), lab.host("r2h1"), **{option: 1})


def test_mn_custom_loads_the_topology_with_the_systems_python():
    command = ["mn", "--custom", "mininet_topos/mn_custom.py", "--controller", "none", "--test", "pingall"]
    command += ["--topo", "blast,racks=3,hosts_per_rack=1,splitters=2x1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=4 * HANGING)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "0% dropped (6/6 received)" in output
    lab = re.search(r"\*\*\* Lab (b[0-9a-f]{3}):", output)[1]
    assert remains(lab) == []


def test_error_under_mn_does_not_remove_other_labs(lab):
    command = ["mn", "--custom", "mininet_topos/mn_custom.py", "--controller", "none", "--topo", "blast,racks=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=4 * HANGING)
    assert "racks is 1, but a lab can have 2 to 32" in done.stdout + done.stderr
    assert len(bridges_of(lab.id)) == 2
    assert lab.net.pingAll(timeout="10") == 0


def test_lab_up_and_down_commands_create_and_remove_lab():
    blast = [str(Path(sys.executable).with_name("blast")), "lab"]
    up = subprocess.Popen(
        [*blast, "up", "--racks", "2", "--no-controller", "--no-agents", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    described = json.loads(up.stdout.readline())
    lab = described["lab"]
    assert (described["thrift"], described["rate_factor"]) == (None, 100)
    assert len(bridges_of(lab)) == 2
    removed = json.loads(subprocess.check_output([*blast, "down", lab, "--json"]))["removed"]
    assert [entry["lab"] for entry in removed] == [lab]
    up.communicate(timeout=HANGING)
    assert remains(lab) == []


def tl1(address, command):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=HANGING) as session:
        session.sendall(command.encode())
        answer = b""
        while not re.search(rb"\n;", answer):
            answer += session.recv(4096)
    return answer.decode()


def light_from_1_to_2(lab, frames=20):
    before = lab.counters.optical(2).received_packets
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as fiber:
        fiber.bind((lab.names.optical_at_tor(1, 1), 0))
        for _ in range(frames):
            fiber.send(bytes.fromhex("01005e4d000102b1a50001010800") + bytes(200))
    return at_rest(lambda: lab.counters.optical(2).received_packets) - before
