"""The synchronous client: one call at a time.

Generated from aio.py by scripts/generate-client: change aio.py, and run the script.

Times are in seconds. Every call may raise a `BlastError`: an answer of the controller (`Rejected`, `TimedOut`, …),
`ControllerUnreachableError` if there is no answer, or `InvalidArgumentError` before the client sends anything.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TypeVar, TypeVarTuple

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from blast_api import BlastOperator
from blast_api.BlastOperator import Iface
from blast_api.ttypes import (
    DrainStatus,
    ElementStatus,
    Event,
    Explanation,
    Extension,
    FabricStatus,
    FiberReport,
    Grant,
    JournalEntry,
    MulticastRequest,
    ReconcileReport,
    RequestStatus,
    TransferReport,
    Version,
)
from blast_client.api import withdrawal
from blast_client.api.address import DEFAULT_ADDRESS, Address
from blast_client.api.arguments import check_call, check_seconds
from blast_client.api.base_error import BlastError
from blast_client.api.calls import (
    NOT_BLAST,
    PAGE,
    AnswerTimeoutError,
    ClientClosedError,
    ConnectionBrokenError,
    ConnectionRejectedError,
    ControllerUnreachableError,
    TlsError,
    filter_of,
    milliseconds,
)
from blast_client.api.errors import Ended, NotLeader, TimedOut, UnknownRequest, as_answer, refuse_ended
from blast_client.api.failover import Controllers, Search, parse_addresses
from blast_client.api.freshness import Freshness
from blast_client.api.methods import SAFE_TO_REPEAT
from blast_client.api.states import PartState, with_states
from blast_client.api.sync_io import ClientConnection, Lock, clock, remaining, run_to_completion, sleep, time_limit
from blast_client.api.tls import TlsSettings, refuse_open_token, tls_reason

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Client:
    """A client of a controller, or of several controllers that share a journal.

    The first call opens the connection. A client makes one call at a time: do not share it between
    threads.

    If several controllers are given, the client finds the leader, also after another controller takes over. It repeats
    only calls that cannot take effect twice.

    Parameters
    ----------
    address : str
        HOST[:PORT] of a controller, or several with commas between them. The default port is 9090.
    timeout : float
        Time in seconds within which a controller must answer. Calls that wait for an event add their own timeout.
    tls : TlsSettings | None
        Certificates for TLS. The controller must present a certificate that the client trusts. None: no TLS.
    token : str | None
        Token that the client sends when it connects.

    Raises
    ------
    AddressError
        An address is malformed.
    CredentialsError
        A certificate or key cannot be used, or the token would leave this machine without TLS.
    InvalidArgumentError
        The timeout is not a number of seconds.
    """

    _service: type[BlastOperator.Client] = BlastOperator.Client
    _safe_to_repeat: Mapping[str, bool] = SAFE_TO_REPEAT

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        timeout: float = 10.0,
        *,
        tls: TlsSettings | None = None,
        token: str | None = None,
    ) -> None:
        self._controllers = Controllers(parse_addresses(address))
        check_seconds(timeout)
        self._timeout = timeout
        self._freshness = Freshness()
        self._calls_sent = 0
        self._has_exited = False
        self._token = token
        self._tls = tls.for_client() if tls else None
        self._check_token(token)
        self._connection: ClientConnection | None = None
        self._connecting = Lock()

    @property
    def address(self) -> Address:
        """The address of the controller that the client uses now."""
        return self._controllers.address

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._has_exited = True

    def close(self) -> None:
        """Close the connection; the next call opens a new connection."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    # ------------------------------------------------------------------ requests

    def submit(self, request: MulticastRequest) -> RequestStatus:
        """Submit a request and return its state without waiting for a grant.

        Parameters
        ----------
        request : MulticastRequest
            The request. Its key identifies it: the same key with the same content is the same request.

        Returns
        -------
        RequestStatus
            State of the request and of its parts.

        Raises
        ------
        Rejected, KeyReused, Denied, Unsupported
            The controller does not accept the request.
        """
        return self._call(Iface.submit, request)

    def await_event(self, key: str, after_sequence: int = 0, timeout: float = 60.0) -> Event:
        """Return the first event of a request whose sequence number is above `after_sequence`.

        Parameters
        ----------
        key : str
            Key of the request.
        after_sequence : int
            Sequence number of the last event that the caller knows.
        timeout : float
            Time to wait, in seconds.

        Returns
        -------
        Event
            The event, with the grant if a part was granted or its grant changed. If the controller has dropped that
            event, the oldest one that it keeps.

        Raises
        ------
        TimedOut
            No such event occurred within `timeout`.
        Ended
            The request has ended and has no such event.
        UnknownRequest
            The controller has no request with this key.
        Rejected
            Too many calls wait for events already (code "too_many_waiting").
        """
        try:
            return self._wait(Iface.awaitEvent, (key, after_sequence), timeout)
        except TimedOut:
            # Controllers of earlier versions raise TimedOut for a request that has ended, too.
            refuse_ended(self.status(key), after_sequence)
            raise

    def request(self, request: MulticastRequest, timeout: float = 60.0) -> Grant:
        """Submit a request and return its first grant.

        If Ctrl-C interrupts the call, the client withdraws the request within 3 s. If
        that fails, the exception has a note.

        Parameters
        ----------
        request : MulticastRequest
            The request. Its key identifies it: the same key with the same content is the same request.
        timeout : float
            Time to wait for the grant, in seconds.

        Returns
        -------
        Grant
            Group address, rate in bits/s and lease of the first part that is granted.

        Raises
        ------
        TimedOut
            No grant within `timeout`. The request stays pending until it expires or the connection closes; the same
            request again waits on.
        Rejected, KeyReused, Denied, Unsupported, Ended
            The controller does not accept the request, or it has ended.
        """
        return self._request(request, timeout, keep_after=Exception)

    def granted(self, request: MulticastRequest, timeout: float = 60.0) -> Granted:
        """Hold a grant for a block: `with client.granted(request) as grant:`.

        After the block the transfer is finished. If an exception or Ctrl-C ends the block, the client
        withdraws the request within 3 s. If that fails, the exception has a note.

        Parameters
        ----------
        request : MulticastRequest
            The request, as for `request`.
        timeout : float
            Time to wait for the grant, in seconds.

        Returns
        -------
        Granted
            Context manager whose target is the `Grant`.

        Raises
        ------
        Ended
            After the block: the grant had ended before the block did.
        BlastError
            On entry: the exceptions of `request`; no request stays pending. After the block: those of `finish`.
        """
        return Granted(self, request, timeout)

    def extend(self, key: str, extension: Extension) -> RequestStatus:
        """Change the members, the lease or the size of a request; the controller applies all changes or none.

        Parameters
        ----------
        key : str
            Key of the request.
        extension : Extension
            Receivers to add or remove, lease time and bytes to add, or the progress of a transfer that may pause.

        Returns
        -------
        RequestStatus
            State of the request after the change is in effect.

        Raises
        ------
        Rejected
            A change is not possible.
        UnknownRequest, Ended
            The controller has no active or pending request with this key.
        """
        return self._call(Iface.extend, key, extension)

    def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        """Report that the transfer of a part is complete, and release its resources.

        Parameters
        ----------
        key : str
            Key of the request.
        part : int
            Number of the part.
        report : TransferReport | None
            Bytes and duration, for the statistics.

        Returns
        -------
        RequestStatus
            State of the request afterwards.

        Raises
        ------
        Rejected
            The request has no such part ("unknown_part"), or the part is not active yet ("not_active").
        UnknownRequest
            The controller has no request with this key.
        Ended
            The part has ended without a call of `finish`; to finish a part twice changes nothing.
        """
        return self._call(Iface.finish, key, part, report or TransferReport())

    def withdraw(self, key: str) -> RequestStatus:
        """Withdraw a pending or active request and release its resources.

        Parameters
        ----------
        key : str
            Key of the request.

        Returns
        -------
        RequestStatus
            State of the request afterwards.

        Raises
        ------
        UnknownRequest
            The controller has no request with this key.
        Ended
            The request has ended, other than by a withdrawal.
        """
        return self._call(Iface.withdraw, key)

    def status(self, key: str) -> RequestStatus:
        """Return the state of a request.

        Parameters
        ----------
        key : str
            Key of the request.

        Returns
        -------
        RequestStatus
            State of the request and of its parts.

        Raises
        ------
        UnknownRequest
            The controller has no request with this key.
        """
        return self._call(Iface.status, key)

    def list_requests(self, states: Sequence[int] = (), page: int = PAGE) -> Iterator[RequestStatus]:
        """Iterate over requests in order of arrival.

        Parameters
        ----------
        states : Sequence[int]
            States (`PartState`) of the requests. Default: all.
        page : int
            Number of requests that one call fetches, from 1 to 1000.

        Yields
        ------
        RequestStatus
            State of the next request.

        Raises
        ------
        InvalidArgumentError
            `states` is not a sequence.
        """
        cursor: str | None = ""
        while cursor is not None:
            answer = self._call(Iface.listRequests, filter_of(states), page, cursor)
            yield from answer.requests
            cursor = answer.nextCursor

    def explain(self, key: str) -> Explanation:
        """Explain what blocks a request.

        Parameters
        ----------
        key : str
            Key of the request.

        Returns
        -------
        Explanation
            A message for people, the blockers, an estimate of the start and a suggestion.

        Raises
        ------
        UnknownRequest
            The controller has no request with this key.
        """
        return self._call(Iface.explain, key)

    # ------------------------------------------------------------------ the controller

    def fabric(self) -> FabricStatus:
        """Return the fabric as the controller knows it.

        Returns
        -------
        FabricStatus
            Racks, splitters, optical switches and light trees.
        """
        return self._call(Iface.fabric)

    def version(self) -> Version:
        """Return the controller's version.

        Returns
        -------
        Version
            Release, protocol version and optional features.
        """
        return self._call(Iface.version)

    def ping(self) -> None:
        """Check that a controller answers."""
        self._call(Iface.ping)

    def login(self, token: str) -> None:
        """Authenticate this connection and later ones by a token.

        Parameters
        ----------
        token : str
            Token that the operator of the controller issued.

        Raises
        ------
        Denied
            The controller does not accept the token.
        CredentialsError
            The token would leave this machine without TLS.
        """
        self._check_token(token)
        self._token = None
        self._call(Iface.login, token)
        self._token = token

    def drain(self, on: bool | None) -> DrainStatus:
        """Start or stop draining, or only return the state.

        A controller that drains accepts no new requests; active ones continue.

        Parameters
        ----------
        on : bool | None
            True: start; False: stop; None: change nothing.

        Returns
        -------
        DrainStatus
            State afterwards, with the number of active and pending parts.
        """
        return self._call(Iface.drain, on)

    def reconcile(self, dry_run: bool = True) -> ReconcileReport:
        """Compare the devices with the journal and, unless `dry_run`, repair the differences.

        Parameters
        ----------
        dry_run : bool
            True: only report the commands that a repair would send.

        Returns
        -------
        ReconcileReport
            Compared devices, commands, and state on devices that Blast did not create.
        """
        return self._call(Iface.reconcile, dry_run)

    def verify_fabric(self) -> FiberReport:
        """Compare the fibers with the configuration by means of probe frames.

        Returns
        -------
        FiberReport
            Elements that are not wired as configured, and elements that were not probed.
        """
        return self._call(Iface.verifyFabric)

    def elements(self) -> list[ElementStatus]:
        """Return every hardware element and its state.

        Returns
        -------
        list[ElementStatus]
            State of each port, splitter, splitter output, static tree, optical switch and ToR.
        """
        return self._call(Iface.elements)

    def quarantine(self, element: str, reason: str) -> None:
        """Take an element out of use; grants that use it continue.

        Parameters
        ----------
        element : str
            Name of the element, as `elements` returns it.
        reason : str
            Reason to report with the state of the element.

        Raises
        ------
        Rejected
            There is no such element ("unknown_element"), or it is an optical switch or a ToR.
        """
        self._call(Iface.quarantine, element, reason)

    def release_element(self, element: str) -> None:
        """Return a quarantined element to use.

        Parameters
        ----------
        element : str
            Name of the element, as `elements` returns it.

        Raises
        ------
        Rejected
            There is no such element ("unknown_element"), or it is not quarantined ("not_quarantined").
        """
        self._call(Iface.releaseElement, element)

    def resume(self) -> None:
        """Release a controller from safe mode; `fabric().warnings` shows why it is in safe mode."""
        self._call(Iface.resume)

    def step_down(self) -> None:
        """Hand leadership to a standby; light trees stay lit.

        Raises
        ------
        Rejected
            There is no standby (code "no_standby").
        """
        self._call(Iface.stepDown)

    def journal(self, after_sequence: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """Return the entries of the journal after a sequence number.

        Parameters
        ----------
        after_sequence : int
            Sequence number of the last entry that the caller knows.
        limit : int
            Maximum number of entries, from 1 to 1000.

        Returns
        -------
        list[JournalEntry]
            Entries with larger sequence numbers, the oldest first.
        """
        return self._call(Iface.journal, after_sequence, limit)

    # ------------------------------------------------------------------ withdrawal

    def _request(
        self, request: MulticastRequest, timeout: float, keep_after: type[Exception] | tuple[type[Exception], ...]
    ) -> Grant:
        """Submit a request and return its grant; withdraw it after exceptions other than `keep_after`."""
        sent_before = self._calls_sent
        try:
            return self._wait(Iface.request, (request,), timeout)
        except keep_after:
            raise
        except BaseException as error:
            if self._calls_sent > sent_before:
                self._withdraw_after(error, request, is_own=False)
            raise

    def _withdraw_after(self, error: BaseException, request: MulticastRequest, *, is_own: bool) -> None:
        """Withdraw a request after an exception; if that fails, add a note to the exception."""
        run_to_completion(self._withdraw_or_report, error, request, is_own)

    def _withdraw_or_report(self, error: BaseException, request: MulticastRequest, is_own: bool) -> None:
        try:
            self._withdraw_soon(request, is_own=is_own)
        except BlastError as failure:
            withdrawal.report_failure(request, error, failure)

    def _withdraw_soon(self, request: MulticastRequest, *, is_own: bool) -> None:
        """Withdraw a request within `withdrawal.TIMEOUT_S` unless it has ended.

        If the client does not know whether it `is_own`, compare its content first: another request may have the same
        key. Raises BlastError.
        """
        name = withdrawal.name_of(request)
        try:
            with time_limit(withdrawal.TIMEOUT_S):
                if is_own or withdrawal.is_same(self.status(name), request):
                    self._repeat_once(Iface.withdraw, name)
        except (Ended, UnknownRequest):
            return
        except TimeoutError:
            raise AnswerTimeoutError(self.address, withdrawal.TIMEOUT_S) from None

    def _repeat_once(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        """Make a call, and repeat it if the connection breaks; the caller handles `Ended` of the second call."""
        try:
            return self._call(method, *arguments)
        except ConnectionBrokenError:
            # A connection that broke while it was idle fails only at the next call.
            return self._call(method, *arguments)

    # ------------------------------------------------------------------ calls

    def _call(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        check_call(method, arguments)
        return self._call_any(method, arguments, None)

    def _wait(self, method: Callable[[Iface, *Arguments, int], T], arguments: tuple[*Arguments], seconds: float) -> T:
        check_seconds(seconds)
        check_call(method, arguments)
        return self._call_any(method, arguments, clock() + seconds)

    def _call_any(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        """Call a method of the leader; try the other controllers until one answers or the time is over."""
        if self._has_exited:
            raise ClientClosedError(self.address, "at the end of its `with`")
        last = (clock() if end is None else end) + remaining(self._timeout)
        search = Search(self._controllers, self._safe_to_repeat[method.__name__], last)
        while True:
            address = self.address
            try:
                return self._call_one(method, arguments, end)
            except (ControllerUnreachableError, NotLeader) as error:
                pause = search.pause_after(error, address, clock())
                if pause is None:
                    raise
            self._leave(address)
            sleep(pause)

    def _leave(self, address: Address) -> None:
        """Stop using the connection to a controller; calls that are outstanding there may still be answered."""
        connection = self._connection
        if connection is not None and connection.address == address:
            self._connection = None
            connection.retire()

    def _call_one(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        """Call a method of one controller; repeat it on a new connection if an old one broke and that is safe."""
        was_open = self._connection is not None and self._connection.is_open
        try:
            return self._call_until(method, arguments, end)
        except ConnectionBrokenError as error:
            if not was_open:
                raise ConnectionRejectedError(self.address, self._tls is not None) from error
            if not self._safe_to_repeat[method.__name__]:
                raise
        return self._call_until(method, arguments, end)

    def _call_until(self, method: Callable[..., T], arguments: Sequence[object], end: float | None) -> T:
        """Call a method; if it waits until `end`, divide the wait into calls that detect a lost controller."""
        while True:
            left = None if end is None else max(end - clock(), 0.0)
            wait = None if left is None else self._controllers.longest_wait(left)
            try:
                return self._send(self._connected(), method, arguments, wait)
            except TimedOut:
                if wait == left:
                    raise

    def _send(
        self, connection: ClientConnection, method: Callable[..., T], arguments: Sequence[object], wait: float | None
    ) -> T:
        safe, known = self._safe_to_repeat[method.__name__], self._freshness.known
        timeout = remaining(self._timeout)
        if safe:
            timeout = self._controllers.call_timeout(timeout)
        if wait is not None:
            arguments, timeout = (*arguments, milliseconds(wait)), wait + timeout
        self._calls_sent += 1
        try:
            answer = with_states(connection.call(method, arguments, timeout))
            return self._freshness.of(answer, known, connection.address) if safe else self._freshness.note(answer)
        except TimeoutError as error:
            raise AnswerTimeoutError(connection.address, timeout) from error
        except ssl.SSLError as error:
            # With TLS 1.3 a client learns only here that the controller refused its certificate.
            raise TlsError(self.address, tls_reason(error)) from error
        except (EOFError, OSError, TTransportException) as error:
            raise ConnectionBrokenError(self.address, "the connection broke") from error
        except TProtocolException as error:
            raise ControllerUnreachableError(self.address, NOT_BLAST) from error
        except TException as answer:
            raise as_answer(answer) from None

    def _connected(self) -> ClientConnection:
        with self._connecting:
            current = self._connection
            if current is not None and current.is_open and current.address == self.address:
                return current
            timeout = self._controllers.call_timeout(remaining(self._timeout))
            connection = ClientConnection.open(self.address, timeout, self._service, self._tls)
            if self._token is not None:
                self._log_in(connection, self._token)
            self._connection = connection
            return connection

    def _log_in(self, connection: ClientConnection, token: str) -> None:
        try:
            self._send(connection, Iface.login, (token,), None)
        except BaseException:
            # No call may use a connection that is not authenticated.
            connection.close()
            raise

    def _check_token(self, token: str | None) -> None:
        if token is not None and self._tls is None:
            refuse_open_token(self.address)


class Granted:
    """The context manager of `Client.granted`: it holds the grant of one request for a block."""

    def __init__(self, client: Client, request: MulticastRequest, timeout: float) -> None:
        self._client, self._request, self._timeout = client, request, timeout
        self._part = 0

    def __enter__(self) -> Grant:
        grant = self._client._request(self._request, self._timeout, keep_after=withdrawal.NOT_SUBMITTED)
        self._part = grant.part
        return grant

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._client._withdraw_after(error, self._request, is_own=True)
            return
        try:
            name = withdrawal.name_of(self._request)
            status = self._client._repeat_once(Iface.finish, name, self._part, TransferReport())
        except Ended:
            raise
        except BaseException as failure:
            self._client._withdraw_after(failure, self._request, is_own=True)
            raise
        if not PartState(status.state).final:
            # No program would use the parts that the controller could still grant.
            self._client._withdraw_soon(self._request, is_own=True)
