from __future__ import annotations

from dataclasses import replace

import pytest

from tl1_driver.circuits import Circuit, CircuitState
from tl1_driver.codec import encode_command
from tl1_driver.dialects import DIALECTS, Dialect, Glimmerglass
from tl1_driver.errors import InvalidCommand, MalformedAnswer
from tl1_driver.session import Wire

GLIMMERGLASS = DIALECTS["glimmerglass"]


def wires(dialect: Dialect, commands: list) -> list[bytes]:
    return [encode_command(command, "ctag", limit=dialect.wire.send_limit) for command in commands]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_names_itself_and_writes_its_commands(name: str) -> None:
    dialect = DIALECTS[name]
    assert dialect.name == name
    assert 0 < dialect.port < 65536
    circuits = [Circuit(1, 2), Circuit(3, 4)]
    commands = [*dialect.connect(circuits), *dialect.disconnect(circuits), dialect.list_circuits()]
    commands += [dialect.login("user", "p;w"), dialect.logout("user"), dialect.sign_of_life()]
    assert all(wire.endswith(b";") for wire in wires(dialect, commands))


def test_glimmerglass_commands() -> None:
    circuits = [Circuit(1, 5), Circuit(2, 6)]
    assert wires(GLIMMERGLASS, GLIMMERGLASS.connect(circuits)) == [
        b"ent-crs-fiber::10001&10002,20005&20006:ctag:::opmode=sync;"
    ]
    assert wires(GLIMMERGLASS, GLIMMERGLASS.disconnect(circuits)) == [b"dlt-crs-fiber::10001&10002,20005&20006:ctag;"]
    assert wires(GLIMMERGLASS, [GLIMMERGLASS.list_circuits()]) == [b"rtrv-crs-fiber::all:ctag;"]
    assert wires(GLIMMERGLASS, [GLIMMERGLASS.login("admin", "a b")]) == [b'ACT-USER::admin:ctag::"a b";']


def test_bulk_is_split_only_when_too_long_and_keeps_its_order() -> None:
    circuits = [Circuit(n, 320 - n) for n in range(1, 320)]
    assert len(GLIMMERGLASS.connect(circuits)) == 1
    narrow = replace(GLIMMERGLASS, wire=Wire(send_limit=500))
    commands = wires(narrow, narrow.connect(circuits))
    assert len(commands) > 1
    names = [wire.split(b":")[2].split(b",")[0] for wire in commands]
    assert b"&".join(names) == b"&".join(str(10000 + c.input).encode() for c in circuits)


def test_one_circuit_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(InvalidCommand):
        replace(GLIMMERGLASS, wire=Wire(send_limit=10)).connect([Circuit(1, 1)])


@pytest.mark.parametrize("number", [0, -1, 10000])
def test_port_numbers_outside_the_naming_scheme(number: int) -> None:
    with pytest.raises(InvalidCommand):
        GLIMMERGLASS.connect([Circuit(number, 1)])
    with pytest.raises(InvalidCommand):
        GLIMMERGLASS.disconnect([Circuit(1, number)])


def test_rows_are_read_by_name_in_any_order_and_case() -> None:
    rows = [
        '"GGN:OUTPWR=-14.277,INPWR=-12.618,connstate=STEADY,OPORTID=20058,IPORTNAME=a, b;c,IPORTID=10042"',
        '"GGN:IPORTID=10001,OPORTID=0,CONNSTATE=single"',
        '"GGN:IPORTID=0,OPORTID=20003,CONNSTATE=single"',
        '"GGN:IPORTID=10004,OPORTID=20004,CONNSTATE=single"',
        "/* a remark */",
    ]
    assert GLIMMERGLASS.read_circuits(rows) == [CircuitState(42, 58, "steady", -12.618, -14.277)]


def test_a_dark_connection_is_made_and_waits_for_light() -> None:
    base = "IPORTID=10001,OPORTID=20001,CONNSTATE=fault,CONNCAUSE=initial_connection_timer_expired"
    [dark] = GLIMMERGLASS.read_circuits([f"{base},INPWR=-48.549"])
    [lit] = GLIMMERGLASS.read_circuits([f"{base},INPWR=-3.1"])
    [unmeasured] = GLIMMERGLASS.read_circuits([f"{base},INPWR=NONE"])
    assert (dark.waits_for_light, lit.waits_for_light, unmeasured.waits_for_light) == (True, False, False)
    assert unmeasured.input_power is None


def test_locked_connection() -> None:
    [state] = GLIMMERGLASS.read_circuits(["IPORTID=10001,OPORTID=20001,CONNSTATE=steady,CONNLOCK=1,CONNLOCKUSER=noc"])
    assert state.locked
    assert state.circuit == Circuit(1, 1)


@pytest.mark.parametrize(
    "row",
    [
        '"no pairs here"',
        "CONNSTATE=steady",
        "IPORTID=10001,CONNSTATE=steady",
        "IPORTID=north,OPORTID=20001",
        "IPORTID=20001,OPORTID=20001",
        "IPORTID=10001,OPORTID=10001",
        "IPORTID=10001,OPORTID=" + "9" * 5000,
    ],
)
def test_rows_that_promise_nothing_are_refused(row: str) -> None:
    with pytest.raises(MalformedAnswer):
        Glimmerglass().read_circuits([row])
