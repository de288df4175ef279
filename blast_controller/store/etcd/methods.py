"""The calls of etcd that Blast makes: each with its name on the wire, what it takes and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from blast_controller.store.etcd.proto import etcd_pb2 as api

Q = TypeVar("Q")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class EtcdMethod(Generic[Q, R]):
    """A call: `path` on the wire, the messages that it takes and gives."""

    path: str
    request: type[Q]
    response: type[R]


RANGE = EtcdMethod("/etcdserverpb.KV/Range", api.RangeRequest, api.RangeResponse)
TXN = EtcdMethod("/etcdserverpb.KV/Txn", api.TxnRequest, api.TxnResponse)
COMPACT = EtcdMethod("/etcdserverpb.KV/Compact", api.CompactionRequest, api.CompactionResponse)
GRANT = EtcdMethod("/etcdserverpb.Lease/LeaseGrant", api.LeaseGrantRequest, api.LeaseGrantResponse)
REVOKE = EtcdMethod("/etcdserverpb.Lease/LeaseRevoke", api.LeaseRevokeRequest, api.LeaseRevokeResponse)
KEEP_ALIVE = EtcdMethod("/etcdserverpb.Lease/LeaseKeepAlive", api.LeaseKeepAliveRequest, api.LeaseKeepAliveResponse)
WATCH = EtcdMethod("/etcdserverpb.Watch/Watch", api.WatchRequest, api.WatchResponse)
STATUS = EtcdMethod("/etcdserverpb.Maintenance/Status", api.StatusRequest, api.StatusResponse)
AUTHENTICATE = EtcdMethod("/etcdserverpb.Auth/Authenticate", api.AuthenticateRequest, api.AuthenticateResponse)
