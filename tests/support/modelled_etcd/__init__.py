"""etcd as far as Blast uses it, in memory and on any clock: in place of a server, a network and a `Connection`."""

from tests.support.modelled_etcd.connection import ModelledConnection, Network
from tests.support.modelled_etcd.server import ModelledEtcd

__all__ = ["ModelledConnection", "ModelledEtcd", "Network"]
