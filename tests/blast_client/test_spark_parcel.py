"""Values for Spark executors: they round trip, and arrays are mapped instead of pickled."""

from __future__ import annotations

import pickle
import subprocess
import sys
from array import array
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blast_client import InvalidArgumentError, receive
from blast_client.send.receivers import AGENT_PORT
from blast_client.spark import SparkSettings
from blast_client.spark.parcel import ValueKind, packed, shown


class Grown(np.ndarray):
    """An array that is more than its bytes."""


def carried(value: Any, folder: Path) -> tuple[ValueKind, Any]:
    parcel = packed(value)
    data = b"".join(bytes(piece) for piece in parcel.pieces(step=1000))
    assert len(data) == parcel.size
    folder.joinpath(f"it{parcel.suffix}").write_bytes(data)
    form = pickle.loads(pickle.dumps(parcel.form))
    return form.kind, form.value(receive("it", folder, timeout=0))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.arange(6000.0).reshape(20, 300), ValueKind.ARRAY),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), ValueKind.ARRAY),
        (np.zeros((0, 3)), ValueKind.ARRAY),
        (np.arange(6.0)[::2], ValueKind.ARRAY),
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), ValueKind.ARRAY),
        (np.array([{}, None], dtype=object), ValueKind.PICKLED),
        (np.arange(4).view(Grown), ValueKind.PICKLED),
        (np.float64(3), ValueKind.PICKLED),
    ],
)
def test_array_round_trips_mapped_or_pickled(value: Any, kind: ValueKind, tmp_path: Path) -> None:
    found, received = carried(value, tmp_path)
    assert found is kind and type(received) is type(value)
    assert received.dtype == value.dtype and received.shape == value.shape and (received == value).all()


def test_received_array_is_mapped_copy_on_write(tmp_path: Path) -> None:
    _, received = carried(np.arange(1000.0), tmp_path)
    assert type(received) is np.ndarray and isinstance(received.base, np.memmap)
    received[0] = 5
    assert receive("it", tmp_path)[0] == 0


@pytest.mark.parametrize("make", [dict, OrderedDict])
def test_dict_of_arrays_keeps_type_and_order(make: Any, tmp_path: Path) -> None:
    value = make(b=np.arange(3, dtype="u1"), a=np.arange(4.0), c=np.array(2, "i4"))
    kind, received = carried(value, tmp_path)
    assert kind in (ValueKind.DICT, ValueKind.ORDERED) and type(received) is make and list(received) == ["b", "a", "c"]
    assert all((received[key] == value[key]).all() and received[key].dtype == value[key].dtype for key in value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": np.arange(3), "b": 4},
        {1: np.arange(3)},
        {"a": np.array(["text"])},
        {"a": np.ma.masked_array([1, 2], [True, False])},
        [1, "two", {3}],
        None,
        array("d", [1.0]),
    ],
)
def test_other_values_are_pickled(value: Any, tmp_path: Path) -> None:
    kind, received = carried(value, tmp_path)
    assert kind is ValueKind.PICKLED and type(received) is type(value) and repr(received) == repr(value)


@pytest.mark.parametrize("value", [b"bytes" * 999, bytearray(b"x"), memoryview(b"y"), b""])
def test_bytes_arrive_as_read_only_view(value: Any, tmp_path: Path) -> None:
    kind, received = carried(value, tmp_path)
    assert kind is ValueKind.BYTES and received == value == shown(value)
    for view in (received, shown(value)):
        assert isinstance(view, memoryview) and view.readonly


def test_settings_map_hosts_to_agents() -> None:
    assert SparkSettings().receivers(["h2"]) == ({"h2": ("h2", "h2", AGENT_PORT)}, [])
    mapped = SparkSettings(agents={"10.0.0.3": "r2h1=10.0.0.3:7000"})
    assert mapped.receivers(["10.0.0.4", "10.0.0.3"]) == ({"10.0.0.3": ("r2h1", "10.0.0.3", 7000)}, ["10.0.0.4"])
    asked = SparkSettings(agents=lambda host: None if host == "h3" else f"{host}.rack")
    assert asked.receivers(["h2", "h3"]) == ({"h2": ("h2.rack", "h2.rack", AGENT_PORT)}, ["h3"])
    with pytest.raises(InvalidArgumentError, match="agents: for the host 'h2', 'x:y' is not HOST"):
        SparkSettings(agents={"h2": "x:y"}).receivers(["h2"])
    with pytest.raises(InvalidArgumentError, match="threshold must be at least 0 bytes"):
        SparkSettings(threshold=-1)


def test_executor_loads_no_modules_of_driver() -> None:
    program = "import blast_client.spark.received, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "blast_client.spark.parcel" in loaded
    driver_modules = {"blast_client.send.broadcasting", "blast_client.spark.copy_server"}
    assert loaded.isdisjoint({"thrift", "numpy", "pyspark"} | driver_modules)
