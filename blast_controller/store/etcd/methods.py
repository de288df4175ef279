"""The calls of etcd that Blast makes: each with its name on the wire, what it takes and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from blast_controller.store.etcd.proto import etcd_pb2 as api

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Method(Generic[Q, R]):
    """A call: `path` on the wire, the messages that it takes and gives."""

    path: str
    request: type[Q]
    response: type[R]


RANGE = Method("/etcdserverpb.KV/Range", api.RangeRequest, api.RangeResponse)
TXN = Method("/etcdserverpb.KV/Txn", api.TxnRequest, api.TxnResponse)
COMPACT = Method("/etcdserverpb.KV/Compact", api.CompactionRequest, api.CompactionResponse)
GRANT = Method("/etcdserverpb.Lease/LeaseGrant", api.LeaseGrantRequest, api.LeaseGrantResponse)
REVOKE = Method("/etcdserverpb.Lease/LeaseRevoke", api.LeaseRevokeRequest, api.LeaseRevokeResponse)
KEEP_ALIVE = Method("/etcdserverpb.Lease/LeaseKeepAlive", api.LeaseKeepAliveRequest, api.LeaseKeepAliveResponse)
WATCH = Method("/etcdserverpb.Watch/Watch", api.WatchRequest, api.WatchResponse)
STATUS = Method("/etcdserverpb.Maintenance/Status", api.StatusRequest, api.StatusResponse)
AUTHENTICATE = Method("/etcdserverpb.Auth/Authenticate", api.AuthenticateRequest, api.AuthenticateResponse)
