"""The interface with one method more, as the compiler would write it:

service Toy extends BlastOperator {
  /** Parts of a tenant that wait for light; absent: of everybody. */
  i32 waiting(1: string tenant) throws (1: Denied denied)
}
"""

from __future__ import annotations

from thrift.Thrift import TApplicationException, TMessageType, TType

from blast_api import BlastOperator
from blast_api.ttypes import Denied


class Iface(BlastOperator.Iface):
    def waiting(self, tenant):
        pass


class _Struct:
    """Read and written by the accelerated codec, as all that is generated."""

    def read(self, protocol):
        protocol._fast_decode(self, protocol, [type(self), self.thrift_spec])

    def write(self, protocol):
        protocol.trans.write(protocol._fast_encode(self, [type(self), self.thrift_spec]))

    def validate(self):
        pass


class waiting_args(_Struct):  # noqa: N801 - as the compiler names it
    thrift_spec = (None, (1, TType.STRING, "tenant", "UTF8", None))

    def __init__(self, tenant=None):
        self.tenant = tenant


class waiting_result(_Struct):  # noqa: N801 - as the compiler names it
    thrift_spec = (
        (0, TType.I32, "success", None, None),
        (1, TType.STRUCT, "denied", [Denied, Denied.thrift_spec], None),
    )

    def __init__(self, success=None, denied=None):
        self.success, self.denied = success, denied


class Client(BlastOperator.Client, Iface):
    def waiting(self, tenant):
        self.send_waiting(tenant)
        return self.recv_waiting()

    def send_waiting(self, tenant):
        self._oprot.writeMessageBegin("waiting", TMessageType.CALL, self._seqid)
        waiting_args(tenant).write(self._oprot)
        self._oprot.writeMessageEnd()
        self._oprot.trans.flush()

    def recv_waiting(self):
        _, kind, _ = self._iprot.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._iprot)
            raise failure
        result = waiting_result()
        result.read(self._iprot)
        self._iprot.readMessageEnd()
        if result.denied is not None:
            raise result.denied
        return result.success
