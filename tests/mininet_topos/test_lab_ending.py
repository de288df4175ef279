"""The end of a process that owns a lab: it removes the whole lab, despite further signals."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

OWNER = """
import signal, sys
from mininet_topos.kernel.termination import end_in_order

end_in_order(0, signal.SIGINT)
try:
    print("up", flush=True)
    signal.pause()
finally:
    print("removing", flush=True)
    sys.stdin.read()
    print("removed", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_further_signals_do_not_interrupt_removal_of_lab(number):
    command = ["env", "--default-signal=INT", sys.executable, "-c", OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdin is not None and owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        owner.send_signal(number)
        assert owner.stdout.readline() == "removing\n"
        for again in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            owner.send_signal(again)
        owner.stdin.close()
        assert owner.stdout.read() == "removed\n"
    assert owner.returncode == 0
