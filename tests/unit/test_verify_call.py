"""`verifyFabric` as a call, and the check at the first start as log lines; no device has anything to do here."""

import logging

from blast_controller.core.fibre_check import FibreReport
from blast_controller.core.fibres.fibre_judge import FibreFault
from blast_controller.core.model.events import ElementQuarantined
from blast_controller.first_check import check_fibres, report_lines
from blast_controller.rpc import convert
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from tests.support.core import make_fabric
from tests.support.runtime import PATIENCE, running

CLIENT = Connection(1, "192.0.2.1:5")


def test_the_call_is_answered_with_the_report():
    with running(make_fabric(1)) as lab:
        lab.runtime.post(ElementQuarantined("port:r1/50", "broken"))
        handler = BlastHandler(lab.runtime, "os-ken", lambda after, limit: (), Gate(OPEN_POLICY, ROLES))
        report = handler.verifyFabric(CLIENT).result(PATIENCE)
        assert (report.faults, report.skipped) == ([], ["port:r1/50: broken"])
        assert "verify" in handler.version(CLIENT).features


def test_faults_keep_their_words():
    report = FibreReport((FibreFault("leg:s1/7", "the leg is dead"),), ("port:r1/50: broken",), 4)
    told = convert.fibre_report(report)
    assert [(fault.element, fault.sentence) for fault in told.faults] == [("leg:s1/7", "the leg is dead")]
    assert (told.skipped, told.probed) == (["port:r1/50: broken"], 4)


def test_at_the_first_start_the_log_gets_the_report(caplog):
    caplog.set_level(logging.INFO)
    with running(make_fabric(1)) as lab:
        lab.runtime.post(ElementQuarantined("port:r1/50", "broken"))
        check_fibres(lab.runtime)
        lab.settle()
    assert "not probed: port:r1/50: broken" in caplog.text
    assert "the fibres were not checked: nothing could be probed" in caplog.text
    assert "wired as configured" not in caplog.text


def test_what_was_probed_is_counted():
    (*_, line) = report_lines(FibreReport((), ("port:r1/50: broken",), 5))
    assert line.message == "the fibres were checked: what was probed is wired as configured (5 probed, 1 not)"


def test_faults_are_warnings():
    lines = list(report_lines(FibreReport((FibreFault("leg:s1/7", "the leg is dead"),), (), 3)))
    assert [(line.level, line.event, line.message) for line in lines] == [
        (logging.WARNING, "fibre_fault", "leg:s1/7: the leg is dead"),
        (logging.INFO, "fibres", "the fibres were checked: 1 differ from the configuration (3 probed, 0 not)"),
    ]
