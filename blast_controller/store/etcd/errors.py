"""What etcd can do to the journal, as faults of a store: each says in one sentence what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

from blast_controller.store.errors import DiskFull, Dispossessed, StoreFault, Unreachable


class StoreUnavailableError(Unreachable):
    """No member of etcd has answered in time.

    Whether what was to be written is written is open until a later commit succeeds or the store is opened again, unless
    `may_be_done` tells that no member can have got it.
    """

    def __init__(self, endpoints: str, reason: str, may_be_done: bool = True) -> None:
        super().__init__(
            f"etcd cannot be reached at {endpoints} ({reason}): see that most of its members run and that this machine "
            "reaches one of them; nothing new is admitted until then"
        )
        self.may_be_done = may_be_done


class SpaceUsedUp(DiskFull):
    """etcd has reached its quota (alarm NOSPACE). Nothing was written; the store stays usable."""

    def __init__(self, endpoints: str) -> None:
        # Not DiskFull's words: here room is not made on a disk.
        StoreFault.__init__(
            self,
            f"the space of etcd at {endpoints} is used up: raise its --quota-backend-bytes, or compact and defragment "
            "it, then disarm the alarm (etcdctl alarm disarm); nothing new is admitted until then",
        )


class CredentialsRefused(StoreFault):
    """etcd does not let us in, or not at our keys: certificate, user, password or role are not what it wants."""

    def __init__(self, endpoints: str, reason: str) -> None:
        super().__init__(
            f"etcd at {endpoints} refuses the controller ({reason}): check certificate, user and password, and that "
            "the user's role may read and write the prefix of the journal"
        )


class CredentialsUnreadable(StoreFault):
    """A file with a certificate, a key or a password cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}, which etcd is to be reached with, cannot be read ({reason}): name a readable file")


class NotLeader(StoreFault):
    """Another controller leads. `address` is where it is reached, None where nobody has said."""

    def __init__(self, address: str | None) -> None:
        where = f" at {address}" if address else ""
        super().__init__(f"another controller{where} leads: ask that one, or wait until this one leads")
        self.address = address


class Deposed(NotLeader, Dispossessed):
    """This controller led, and does no longer: etcd has refused what it would have written.

    Nothing of that is written, but for what a StoreUnavailableError had left open before; or, if not `is_known`, the
    other has led for so long that it can no longer be told. Only opening the store again, which campaigns anew, goes
    on.
    """

    def __init__(self, address: str | None, is_known: bool = True) -> None:
        super().__init__(address)
        where = f" to the one at {address}" if address else ""
        open_end = "" if is_known else "; whether its last commit counts can no longer be told"
        self.args = (f"this controller has lost the lead{where}: it writes no more until it leads again{open_end}",)


class DamagedInEtcd(StoreFault):
    """What is under the prefix is no whole journal. It is left as it is."""

    def __init__(self, prefix: str, reason: str) -> None:
        super().__init__(
            f"what etcd has under {prefix} is not a whole journal ({reason}): restore it from a backup, or name "
            "another prefix to start without memory, which takes down all light that Blast has set"
        )


class NewerInEtcd(StoreFault):
    """A later release wrote it."""

    def __init__(self, prefix: str, found: int, known: int) -> None:
        super().__init__(
            f"the journal that etcd has under {prefix} has format {found} and this release knows formats up to "
            f"{known}: run the release that wrote it, or a later one"
        )


class RequestRefused(StoreFault):
    """etcd refuses a request for what it is, such as one too large for its configuration. Nothing was written."""

    def __init__(self, endpoints: str, reason: str) -> None:
        super().__init__(
            f"etcd at {endpoints} refuses a request ({reason}): run it with --max-request-bytes and --max-txn-ops at "
            "least as large as by default"
        )


class LeaseLostError(StoreFault):
    """The lease has run out, or was revoked by somebody else. Whoever asked takes a new one."""

    def __init__(self) -> None:
        super().__init__("the lease of the controller has run out: this controller does not lead")


class RevisionCompactedError(StoreFault):
    """The revision that was to be read is compacted away. Whoever read begins anew."""

    def __init__(self) -> None:
        super().__init__("etcd was compacted while the journal was read: read it again")
