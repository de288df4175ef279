"""What has labels of its own is bounded, whatever a switch says."""

from __future__ import annotations

from prometheus_client import generate_latest

from blast_controller.ops.metering import MOST_CODES, Metering
from blast_controller.ops.metrics import Metrics


def test_a_switch_that_invents_error_codes_gets_no_more_labels():
    metrics = Metrics()
    metering = Metering(metrics, ["default"])
    for number in range(10 * MOST_CODES):
        metering.refused("glimmerglass", f"C{number}")
    metering.refused("glimmerglass", "C0")
    lines = [line for line in generate_latest(metrics.registry).decode().splitlines() if "tl1_errors_total{" in line]
    assert len(lines) == MOST_CODES + 1
    assert 'blast_tl1_errors_total{code="C0",dialect="glimmerglass"} 2.0' in lines
    assert f'blast_tl1_errors_total{{code="other",dialect="glimmerglass"}} {9.0 * MOST_CODES}' in lines
