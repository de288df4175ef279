"""Scene (e): extension, withdrawal, and a rejected request."""

from __future__ import annotations

from blast_api.ttypes import Extension, Rejected
from mininet_topos.demo.capture import Captures
from mininet_topos.demo.stage import GRANT_SECONDS, Stage


def play(stage: Stage) -> None:
    """Change a lit group, withdraw an active and a pending request, and submit an invalid one."""
    stage.open_scene("e", "Extend, withdraw, reject")
    _extend(stage)
    _withdraw(stage)
    _refuse(stage)


def _extend(stage: Stage) -> None:
    hosts = stage.first_hosts()
    sender, first, second, third = hosts[:4]
    request = stage.new_request(sender, [first, second], 10_000_000, "extend")
    with stage.granted(request) as grant, Captures(stage, hosts, grant.groupAddress) as captures:
        stage.explain(f"{sender} sends to {first} and {second}; add {third} and extend the lease by 5 s")
        status = stage.client.extend(request.key, Extension(addReceivers=[third], addLeaseMs=5000))
        captures.send(sender, grant, 20)
        members = {first, second, third}
        reached = captures.reached(20, members)
        stage.check("all members of the extended group receive every packet", reached == members, _names(reached))
        changed = status.parts[0].grant
        lease = changed.leaseMs if changed else 0
        stage.check("the lease is extended by 5 s", lease == grant.leaseMs + 5000, f"{grant.leaseMs} ms to {lease} ms")
        stage.client.extend(request.key, Extension(removeReceivers=[first]))
        captures.send(sender, grant, 20)
        members = {second, third}
        reached = captures.reached(20, members)
        stage.check("after a removal, only the other members receive", reached == members, _names(reached))


def _withdraw(stage: Stage) -> None:
    stage.wait_dark()
    hosts = stage.first_hosts()
    request = stage.new_request(hosts[0], hosts[1:4], 10_000_000, "withdraw")
    stage.client.request(request, GRANT_SECONDS)
    waiting = stage.new_request(hosts[0], hosts[1:3], 10_000_000, "withdraw")
    stage.client.submit(waiting)
    reason = stage.client.status(waiting.key).parts[0].reason
    stage.client.withdraw(waiting.key)
    stage.client.withdraw(request.key)
    stage.wait_dark()
    free = [e for e in stage.client.elements() if e.state == "free"]
    total = len(stage.client.elements())
    stage.explain(f"withdraw a pending request ({reason}), then the active one")
    stage.check("withdrawal frees every element", len(free) == total, f"{len(free)} of {total} elements free")


def _refuse(stage: Stage) -> None:
    hosts = stage.first_hosts()
    plan = stage.lab.plan
    reach = 2 + sum((fan_out - 1) * count for fan_out, count in plan.splitters.items())
    if reach < plan.racks:
        request, code = stage.new_request(hosts[0], hosts[1 : reach + 1], 1_000_000), "group_too_wide"
    else:
        request, code = stage.new_request(hosts[0], hosts[:3], 1_000_000), "sender_among_receivers"
    try:
        stage.client.submit(request)
        stage.check("an invalid request is rejected", False, "it was admitted")
    except Rejected as refusal:
        stage.check("an invalid request is rejected", refusal.code == code, f"{refusal.code}: {refusal.message}")


def _names(hosts: set[str]) -> str:
    return " ".join(sorted(hosts)) or "none"
