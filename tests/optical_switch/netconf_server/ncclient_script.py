"""A session of ncclient: `ncclient_script.py HOST PORT HOST-KEY-FILE MODELS`.

It prints one JSON object. `MODELS` is the folder of the YANG modules, against which libyang validates the data of the
device; empty where they are not on this machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lxml import etree
from ncclient import manager
from ncclient.operations import RPCError
from ncclient.transport.session import NetconfBase
from ncclient.xml_ import to_ele

OPSW = "http://www.polatis.com/yang/optical-switch"
NC = "urn:ietf:params:xml:ns:netconf:base:1.0"
LOGGED = "<activity-log><logging-enabled>true</logging-enabled></activity-log>"
LEVEL = (
    f'<voa xmlns="{OPSW}"><port><port-id>9</port-id><atten-mode>VOA_MODE_RELATIVE</atten-mode>'
    "<atten-level>-3.5</atten-level></port></voa>"
)


def config(inside: str) -> str:
    return f'<config xmlns="{NC}">{inside}</config>'


def pairs(pairs: dict[int, int]) -> str:
    inside = "".join(f"<pair><ingress>{one}</ingress><egress>{other}</egress></pair>" for one, other in pairs.items())
    return config(f'<cross-connects xmlns="{OPSW}">{inside}</cross-connects>')


def circuits(session: manager.Manager, source: str = "running") -> dict[str, str]:
    data = session.get_config(source, filter=("subtree", f'<cross-connects xmlns="{OPSW}"/>')).data
    return {pair[0].text: pair[1].text for pair in data.iter(f"{{{OPSW}}}pair")}


def refusal(call) -> list[str | None]:
    try:
        call()
    except RPCError as error:
        return [error.tag, error.path]
    return []


def run(session: manager.Manager, other: manager.Manager) -> dict[str, object]:
    found: dict[str, object] = {
        "version": "1.1" if session._session._base == NetconfBase.BASE_11 else "1.0",
        "capabilities": len(list(session.server_capabilities)),
    }
    session.create_subscription(stream_name="Polatis")
    with session.locked("candidate"):
        session.edit_config(
            target="candidate", config=config(f'<system-config xmlns="{OPSW}">{LOGGED}</system-config>')
        )
        session.edit_config(target="candidate", config=pairs({n: 8 + n for n in range(1, 9)}))
        found["locked"] = refusal(lambda: other.edit_config(target="candidate", config=pairs({1: 10})))
        session.commit()
    found["pairs"] = circuits(session)
    event = session.take_notification(timeout=20)
    found["notification"] = event.notification_ele[1].tag.partition("}")[2]
    found["port 0"] = refusal(lambda: session.edit_config(target="candidate", config=pairs({0: 9})))
    deletion = f'<pair xmlns:nc="{NC}" nc:operation="delete"><ingress>3</ingress></pair>'
    swap = pairs({1: 10, 2: 9}).replace("</cross-connects>", f"{deletion}</cross-connects>")
    session.edit_config(target="candidate", config=swap, error_option="rollback-on-error")
    session.commit(confirmed=True, timeout="300")
    found["swapped"] = circuits(other)
    session.cancel_commit()
    found["cancelled"] = circuits(other)
    session.dispatch(to_ele(f'<port-set-state xmlns="{OPSW}"><port-disab>3</port-disab></port-set-state>'))
    status = f'<port-config xmlns="{OPSW}"><port><port-id>3</port-id><status/></port></port-config>'
    found["status"] = session.get(filter=("subtree", status)).data.findtext(f".//{{{OPSW}}}status")
    found["lock"] = [session.lock("running").ok, refusal(lambda: other.lock("running"))]
    other.kill_session(session.session_id)
    found["unlocked"] = other.lock("running").ok
    return found


def validate(session: manager.Manager, models: Path) -> list[str] | None:
    """Validate all data of the device against the models, and return the names of the containers; None: no libyang."""
    try:
        import oopt_gnpy_libyang as libyang
    except ImportError:
        return None
    options = libyang.ContextOptions
    context = libyang.Context(str(models), options.NoYangLibrary | options.DisableSearchCwd)
    for module in ("optical-switch", "polatis-switch"):
        context.load_module(module)
    session.edit_config(target="candidate", config=config(LEVEL))
    session.commit()
    # The list of streams is of RFC 5277, which has no YANG module.
    data = [child for child in session.get().data if child.tag.startswith(f"{{{OPSW}}}")]
    text = "".join(etree.tostring(child, encoding="unicode") for child in data)
    parse, validation = libyang.ParseOptions.Strict, libyang.ValidationOptions.Present
    assert context.parse_data(text, libyang.DataFormat.XML, parse, validation) is not None
    return [child.tag.partition("}")[2] for child in data]


def main() -> None:
    host, port, host_key, models = sys.argv[1:]
    options = {
        "host": host,
        "port": int(port),
        "username": "admin",
        "password": Path(host_key).with_name("password").read_text(),
        "hostkey_b64": Path(host_key).read_text().split()[1],
        "allow_agent": False,
        "look_for_keys": False,
        "timeout": 60,
    }
    with manager.connect(**options) as other:
        session = manager.connect(**options)
        found = run(session, other)
        found["validated"] = validate(other, Path(models)) if models else None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
