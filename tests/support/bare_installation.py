"""What an administrator does with Blast's packages and guides, on a bare Debian 12 of which nothing else is asked.

A program for that system's own Python and for root, run by `scripts/bare-debian` in a clone of the project. It prints a
line for each thing that held, and ends at the first that does not. No systemd runs there; what it would start is
started by hand.
"""

from __future__ import annotations

import fcntl
import json
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTROLLER, AGENT = Path("/etc/blast/blast.toml"), Path("/etc/blast/agent.toml")
STATE = {"blast": Path("/var/lib/blast"), "blast-agent": Path("/var/lib/blast-agent")}
LIBRARIES = Path("/usr/lib/blast")
PACKAGES = ("blast-common", "blast-agent", "blast-controller")
SET_INTERFACE_FLAGS, INTERFACE_IS_UP = 0x8914, 0x1  # linux/sockios.h, linux/if.h
MINE = "\n# This line is the administrator's.\n"
NEXT = "\n# This line is the next release's.\n"


def run(*words: str, status: int = 0) -> str:
    """Standard output of a command that must end with `status`."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def held(what: str) -> None:
    """Tell that something was looked at and is so."""
    print(f"held: {what}", flush=True)


def packages(folder: Path) -> list[str]:
    """The packages in a folder, as apt takes them."""
    found = sorted(f"{folder.resolve()}/{path.name}" for path in folder.glob("blast-*.deb"))
    assert len(found) == len(PACKAGES), found
    return found


def installed(name: str) -> str:
    """Version and state of a package."""
    return run("dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", name)


@contextmanager
def service(name: str, user: str) -> Iterator[dict[str, object]]:
    """What the unit starts, as its user; gives its first line of JSON, and stops it as systemd would."""
    unit = Path(f"/lib/systemd/system/{name}.service").read_text()
    command = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0].split()
    if name == "blast-agent":
        command.append("--json")
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    process = subprocess.Popen([*as_user, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0, f"{name} ended with status {process.returncode}"


def services_work() -> None:
    """The services on a network of their own: the machine's has other users, and maybe other controllers."""
    run("unshare", "--net", sys.executable, __file__, "services")


def raise_loopback() -> None:
    """`ip link set lo up`, where there is no `ip`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", INTERFACE_IS_UP))


def try_services() -> None:
    """Both are started as their units say, and a file comes through the agent."""
    raise_loopback()
    with service("blast-controller", "blast") as told, service("blast-agent", "blast-agent") as ready:
        assert (told["event"], ready["event"]) == ("ready", "ready"), (told, ready)
        sent = Path("/root/sent")
        sent.write_bytes(b"light" * 100_000)
        run("blast", "send", str(sent), "--to", "here=127.0.0.1:9095", "--via", "pipeline")
        came = STATE["blast-agent"] / "incoming" / "sent"
        assert came.read_bytes() == sent.read_bytes()
        assert came.owner() == "blast-agent"


def install_packages(built: list[str]) -> None:
    """The first installation."""
    run("apt-get", "install", "-y", "--no-install-recommends", *built)
    for user, folder in STATE.items():
        assert pwd.getpwnam(user).pw_shell == "/usr/sbin/nologin"
        assert folder.owner() == user and not stat.S_IMODE(folder.stat().st_mode) & 0o007, folder
    for user, part, file in (("blast", "controller", CONTROLLER), ("blast-agent", "agent", AGENT)):
        run("runuser", "-u", user, "--", "blast", part, "check", "--config", str(file))
    held("installed, and both configurations pass their checks as the services' own users")
    assert any(LIBRARIES.rglob("*.pyc"))
    services_work()
    held("what the units start serves, as users without privilege, and a file came through the agent")


def next_release(built: list[str], folder: Path) -> list[str]:
    """The same packages with a higher version, whose examples of a configuration have changed."""
    folder.mkdir()
    for package in built:
        tree = folder / "tree"
        run("dpkg-deb", "--raw-extract", package, str(tree))
        control = tree / "DEBIAN" / "control"
        control.write_text(re.sub(r"(\d)-1\b", r"\1-2", control.read_text()))
        for file in (tree / "etc" / "blast").glob("*.toml"):
            file.write_text(file.read_text() + NEXT)
        run("dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(folder))
        shutil.rmtree(tree)
    return packages(folder)


def upgrade(later: list[str]) -> None:
    """What the administrator wrote stays, what he left alone is renewed, state is not touched."""
    CONTROLLER.write_text(CONTROLLER.read_text() + MINE)
    journal = STATE["blast"] / "journal.sqlite"
    before = journal.stat().st_ino
    run("apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", *later)
    assert all(installed(name).split()[0].endswith("-2") for name in PACKAGES)
    assert MINE in CONTROLLER.read_text() and NEXT not in CONTROLLER.read_text()
    assert NEXT in CONTROLLER.with_suffix(".toml.dpkg-dist").read_text()
    assert NEXT in AGENT.read_text()
    assert journal.stat().st_ino == before
    services_work()
    held("upgraded: a changed configuration and the journal are kept, an unchanged one is renewed, both services work")


def remove_and_return(later: list[str]) -> None:
    """Removal leaves what is the administrator's, and nothing of the program."""
    run("apt-get", "remove", "-y", *PACKAGES)
    assert not LIBRARIES.exists(), sorted(LIBRARIES.rglob("*"))[:20]
    assert not Path("/usr/bin/blast").exists()
    assert MINE in CONTROLLER.read_text() and (STATE["blast"] / "journal.sqlite").exists()
    held("removed: nothing of the program is left, configuration and state are")
    run("apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", *later)
    assert MINE in CONTROLLER.read_text()
    services_work()
    held("installed again, with the configuration of before")


def purge() -> None:
    """Only a purge takes configuration and state."""
    CONTROLLER.with_suffix(".toml.dpkg-dist").unlink(missing_ok=True)
    run("apt-get", "purge", "-y", *PACKAGES)
    left = [path for path in (CONTROLLER.parent, LIBRARIES, *STATE.values()) if path.exists()]
    assert not left, left
    held("purged: configuration and state are gone")


def without_packages(guide: str) -> list[str]:
    """The lines of a guide's second block, its way of installing without packages, that need no systemd."""
    text = Path("docs", guide).read_text()
    block = re.findall(r"^```\n(.*?)^```$", text[text.index("Or without packages:") :], re.DOTALL | re.MULTILINE)[0]
    return [line for line in block.splitlines() if not line.startswith("systemctl ")]


def by_the_guides() -> None:
    """The operator's guide and then the agent's, on one machine, as they are written."""
    for user in STATE:
        run("userdel", user)
    script = ["set -e", *without_packages("operator.md")]
    script += ["/opt/blast/bin/blast controller example-config > /etc/blast/blast.toml"]
    script += ["runuser -u blast -- /opt/blast/bin/blast controller check --config /etc/blast/blast.toml"]
    run("bash", "-c", "\n".join(script))
    run("bash", "-c", "\n".join(["set -e", *without_packages("agent.md")]))
    run("runuser", "-u", "blast", "--", "/opt/blast/bin/blast", "controller", "check", "--config", str(CONTROLLER))
    held("controller and agent installed on one machine by the two guides, and both checks pass as written")


def main() -> int:
    """All of it, in the order of an installation's life."""
    run("apt-get", "update")
    run("apt-get", "install", "-y", "--no-install-recommends", "python3-venv")
    run("make", "deb")
    built = packages(Path("dist"))
    held("built")
    install_packages(built)
    later = next_release(built, Path("/root/next"))
    upgrade(later)
    remove_and_return(later)
    purge()
    by_the_guides()
    return 0


if __name__ == "__main__":
    sys.exit(try_services() if sys.argv[1:] == ["services"] else main())
