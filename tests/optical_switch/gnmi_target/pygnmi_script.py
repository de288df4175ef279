"""One session of pygnmi to an emulated switch; the answers are printed as JSON."""

from __future__ import annotations

import json
import sys

from pygnmi.client import gNMIclient, gNMIException

ROW = "OCS_CROSS_CONNECT/1A-2B"
STATE_PATHS = [
    {"path": "OCS_PORT_TABLE/1A/oper_status", "mode": "on_change"},
    {"path": "OCS_CROSS_CONNECT_TABLE/1A-2B/status", "mode": "on_change"},
]


def values(response: dict) -> dict:
    """Return the updates of all notifications by path."""
    return {
        update["path"]: update["val"]
        for notification in response["notification"]
        for update in notification.get("update", [])
    }


def stream_until(client: gNMIclient, path: str, expected: object) -> list:
    """Return what a stream sends until a path has a value."""
    seen = []
    stream = client.subscribe2(
        {"subscription": STATE_PATHS, "mode": "stream", "encoding": "json_ietf"}, target="STATE_DB"
    )
    try:
        while True:
            update = stream.get_update(timeout=30)
            for one in update.get("update", {}).get("update", []):
                seen.append([one["path"], one["val"]])
                if [one["path"], one["val"]] == [path, expected]:
                    return seen
    finally:
        stream.close()


def main(host: str, port: str, ca: str, certificate: str, key: str) -> None:
    answers: dict[str, object] = {}
    client = gNMIclient(
        target=(host, int(port)),
        username="admin",
        password="secret",
        path_root=ca,
        path_cert=certificate,
        path_key=key,
    )
    with client:
        capabilities = client.capabilities()
        answers["models"] = [model["name"] for model in capabilities["supported_models"]]
        answers["version"] = capabilities["gnmi_version"]
        answers["encodings"] = sorted(capabilities["supported_encodings"])
        client.set(update=[(ROW, {"a_side": "1A", "b_side": "2B"})], target="CONFIG_DB", encoding="json_ietf")
        answers["stream"] = stream_until(client, "OCS_PORT_TABLE/1A/oper_status", "connected")
        answers["database"] = values(client.get(path=["OCS_CROSS_CONNECT"], target="CONFIG_DB", encoding="json_ietf"))
        model = "sonic-ocs:sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id=1A-2B]"
        answers["model"] = values(client.get(path=[model], encoding="json_ietf"))
        once = {"subscription": [{"path": "OCS_CROSS_CONNECT"}], "mode": "once", "encoding": "json_ietf"}
        answers["once"] = [
            [one["path"], one["val"]]
            for message in client.subscribe2(once, target="CONFIG_DB")
            for one in message.get("update", {}).get("update", [])
        ]
        client.set(replace=[("OCS_CROSS_CONNECT", {"3A-3B": {"a_side": "3A", "b_side": "3B"}})], target="CONFIG_DB")
        client.set(delete=["OCS_CROSS_CONNECT/3A-3B"], target="CONFIG_DB")
        answers["empty"] = values(client.get(path=["OCS_CROSS_CONNECT"], target="CONFIG_DB", encoding="json_ietf"))
        try:
            client.set(update=[("OCS_CROSS_CONNECT/1A-9B", {"a_side": "1A", "b_side": "9B"})], target="CONFIG_DB")
        except gNMIException as error:
            answers["refused"] = str(error)
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
