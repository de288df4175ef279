/**
 * Interface between applications or operators and the Blast controller.
 *
 * Transport: TFramedTransport, TBinaryProtocol (TCompactProtocol is accepted). A frame is at most 1 MiB.
 * New versions only add optional fields to structs. Field names end with the unit: Bytes, Ms (relative to receipt),
 * BitsPerSecond, Dbm. The client chooses the key of a request. Submitting the same key with the same content again is
 * idempotent and returns the same answer.
 */
namespace py blast_api
namespace java org.blast

// ---------------------------------------------------------------------------------------------------- requests

/** A request for a multicast. Host names are those of the controller's configuration. */
struct MulticastRequest {
  /** Key: at most 64 characters, unique within the tenant, by default remembered for an hour after the request ended. */
  1: required string key
  /** Sending host. */
  2: required string sender
  /** Receiving hosts: at least one, no duplicates, without the sender. */
  3: required list<string> receivers
  /** Size of the data, > 0. Each receiver receives all of it. */
  4: required i64 bytes
  /** Feature "tenants"; the default tenant is "default". */
  5: optional string tenant
  /**
   * Maximum rate of the sender; it extends the estimated service time. The controller rejects a rate below its minimum
   * (bad_rate), and a transfer that would take longer than the maximum lease (lease_too_long).
   */
  6: optional i64 maxBitsPerSecond
  /** Time after which a request that is still pending expires (state EXPIRED). Default: no limit. */
  7: optional i64 pendingTimeoutMs
  /** Feature "deadlines": deadline of the transfer, for the policy "edf". */
  8: optional i64 deadlineMs
  /** Feature "priorities": a larger value is more urgent. */
  9: optional i32 priority
  /** Feature "splitting": whether the controller may serve the receivers in several parts. */
  10: optional bool maySplit
  /** Feature "pausing": whether the controller may pause the transfer at a byte, see `Extension.progressBytes`. */
  11: optional bool mayPause
}

/** State of a part. Final states: DONE, WITHDRAWN, EXPIRED, FAILED, REJECTED. */
enum PartState {
  PENDING = 1
  CONFIGURING = 2
  ACTIVE = 3
  DONE = 4
  WITHDRAWN = 5
  EXPIRED = 6
  FAILED = 7
  REJECTED = 8
}

/** Durations of the steps of a grant, measured by the controller. */
struct StepTimings {
  /** Decision: admission, allocation, tree. */
  1: optional double computeMs
  /** From the first OpenFlow message to the last barrier reply. */
  2: optional double openflowMs
  /** From the first command to an optical switch to the last completion. */
  3: optional double opticalMs
  /** From the receipt of the request to the sending of the grant. */
  4: optional double totalMs
}

/** Optical power at a leaf, computed from the configured losses. Absent from grants if no losses are configured. */
struct LeafMargin {
  1: required string rack
  /** Typical received power. */
  2: optional double receivedDbm
  /** Difference between the minimum received power and the receiver's sensitivity. */
  3: optional double sensitivityMarginDb
  /** Difference between the receiver's overload and the maximum received power. */
  4: optional double overloadMarginDb
  /** Minimum received power. */
  5: optional double minDbm
  /** Maximum received power. */
  6: optional double maxDbm
  /** Element that limits the smaller margin. */
  7: optional string limitingElement
}

/** Permission to send to a group of receivers over the optical network. */
struct Grant {
  1: required string key
  /** Part of the request that this grant serves, from 0. */
  2: required i32 part
  3: required list<string> receivers
  /** IPv4 multicast address for UDP datagrams … */
  4: required string groupAddress
  /** … and, by convention, their port. */
  5: required i32 groupPort
  /** Rate of the light tree in bits on the wire per second: never send faster. */
  6: required i64 rateBitsPerSecond
  /** Estimated duration of the transfer at that rate. */
  7: required i64 estimatedServiceMs
  /** Lease from the grant on: the controller then releases the resources, unless the lease is extended. */
  8: required i64 leaseMs
  /** First byte to send: 0, or the position at which a paused transfer continues. */
  9: required i64 firstByte
  /** Receivers of the request without a grant. */
  10: required list<string> pendingReceivers
  /** Number of the reservation on devices (lower half of the OpenFlow cookie). */
  11: required i32 reservation
  12: optional StepTimings timings
  /** Margins, smallest first. For very many leaves, and in lists of requests, only the first ones. */
  13: optional list<LeafMargin> margins
}

/** Kind of an event. */
enum EventKind {
  GRANTED = 1
  PAUSED = 2
  /** The grant changed (`extend`); `grant` is the new one. */
  CHANGED = 3
  REVOKED = 4
  ENDED = 5
}

/** Event of one part of a request. */
struct Event {
  /** Number, from 1 for each request. A gap means that older events were dropped: call `status` for the current state. */
  1: required i64 sequence
  2: required EventKind kind
  3: required i32 part
  4: optional Grant grant
  /** Reason in one sentence, if any. */
  5: optional string reason
  /** Final state, with ENDED. */
  6: optional PartState state
}

/** Result of a transfer, for the operator's statistics only. */
struct TransferReport {
  1: optional i64 bytesSent
  /** From the first datagram to the confirmation of the last receiver. */
  2: optional i64 durationMs
  /** Bytes that were sent again over the packet network. */
  3: optional i64 repairedBytes
  /** Receivers without the complete data. */
  4: optional list<string> failedReceivers
}

/** Status of a part: receivers of a request that one light tree serves. */
struct PartStatus {
  /** Number, from 0. */
  1: required i32 part
  2: required PartState state
  3: required list<string> receivers
  4: optional Grant grant
  /** Reason in one sentence why it waits or has ended. */
  5: optional string reason
  /** Remaining lease of an active part. */
  6: optional i64 leaseLeftMs
  /** Report of the sender for a part that is done. */
  7: optional TransferReport report
}

/** Current status of a request, extensions included. */
struct RequestStatus {
  1: required string key
  2: required string tenant
  /** State, derived from the states of its parts. */
  3: required PartState state
  4: required string sender
  5: required list<string> receivers
  6: required i64 bytes
  /** Time since the controller received the request. */
  7: required i64 ageMs
  8: required list<PartStatus> parts
  /** Sequence number of the latest event, 0 if none. */
  9: required i64 latestSequence
  /**
   * Maximum age of this answer. Present if the controller is a standby, or if it shares a journal and does not know
   * whether its last write is valid.
   */
  10: optional i64 staleMs
  /**
   * Last journal entry that this answer includes, if several controllers share a journal. An answer with a smaller
   * number than an earlier answer is older than that one.
   */
  11: optional i64 journalSequence
}

/** Change of a pending or active request: at least one field. It is applied completely or rejected completely. */
struct Extension {
  1: optional list<string> addReceivers
  2: optional list<string> removeReceivers
  /** Time to add to the lease; rejected (lease_too_long) beyond the maximum lease. */
  3: optional i64 addLeaseMs
  /** Bytes to add to the size of the data. */
  4: optional i64 addBytes
  /**
   * Feature "pausing", without other fields: all bytes before this one have been sent. A sender of a request that may
   * pause must report this once in each lease. At the end of the lease, the controller then extends it, or pauses the
   * request, which continues at this byte. Without a report, the controller assumes that the sender is gone.
   */
  5: optional i64 progressBytes
  /** Part to which `progressBytes` applies; default 0. */
  6: optional i32 part
}

/** Filter of a list of requests; an absent field does not restrict it. */
struct RequestFilter {
  1: optional string tenant
  2: optional list<PartState> states
}

/** Page of a list of requests. */
struct RequestPage {
  1: required list<RequestStatus> requests
  /** Cursor for the next call; absent on the last page. */
  2: optional string nextCursor
  /** As in RequestStatus. */
  3: optional i64 staleMs
  /** As in RequestStatus. */
  4: optional i64 journalSequence
}

/** Explanation of the state of a request (feature "explain"). */
struct Explanation {
  1: required string key
  2: required string message
  3: optional list<string> blockers
  4: optional i64 estimatedStartMs
  5: optional string suggestion
}

// ------------------------------------------------------------------------------------------------------ fabric

/** Optical port of a rack: its transmit fiber enters the switch at an input, its receive fiber leaves it at an output. */
struct OpticalPortStatus {
  /** OpenFlow port of the rack's datapath. */
  1: required i32 port
  2: required string opticalSwitch
  3: required i32 switchInput
  4: required i32 switchOutput
  /** Reservation that holds it. */
  5: optional i32 reservation
  /** Reason if it is unusable. */
  6: optional string unusable
}

/** Rack: a datapath and a set of its ports. */
struct RackStatus {
  1: required string name
  /** Datapath id in hexadecimal; several racks may share one. */
  2: required string datapath
  /** Whether its ToR is connected to the controller. */
  3: required bool connected
  4: required list<OpticalPortStatus> opticalPorts
  5: required list<string> hosts
  /** Configured rates of the hosts' access links to the packet network, in each direction. */
  6: optional map<string, i64> accessBitsPerSecond
  /** Configured rate of the rack's uplink to the other racks, in each direction. */
  7: optional i64 uplinkBitsPerSecond
  /** Address of each host on the data network. */
  8: optional map<string, string> addresses
}

/** Passive splitter: an output of the switch feeds it, and its outputs enter inputs of the switch. */
struct SplitterStatus {
  1: required string name
  /** Number of its outputs. */
  2: required i32 fanOut
  3: required string opticalSwitch
  4: required i32 switchOutput
  5: required list<i32> switchInputs
  /** Reservation that holds it. */
  6: optional i32 reservation
  /** Reason if it is unusable. */
  7: optional string unusable
}

/** Optical circuit switch. */
struct OpticalSwitchStatus {
  1: required string name
  2: required bool connected
  /** Reason if it is disconnected. */
  3: optional string reason
}

/** Cross-connect of one input fiber to one output fiber. */
struct CrossConnectStatus {
  1: required string opticalSwitch
  2: required i32 switchInput
  3: required i32 switchOutput
}

/** Light tree that devices hold, or are being configured to hold. */
struct LightTreeStatus {
  1: required i32 reservation
  /** Request that it serves … */
  2: required string key
  /** … and part of the request. */
  3: required i32 part
  /** configuring, lit, changing, idle or releasing. */
  4: required string state
  5: required string groupAddress
  6: required string rootRack
  7: required list<string> leafRacks
  /** Splitters from the root on; empty for a group of one or two racks. */
  8: required list<string> splitters
  9: required list<CrossConnectStatus> crossConnects
}

/** Resources of one kind that no transfer uses. */
struct IdleResources {
  1: required string opticalSwitch
  /** Fan-out of the splitters; absent for the optical ports of all racks. */
  2: optional i32 fanOut
  /** Dark resources, and resources that are being disconnected. */
  3: required i32 dark
  /** Resources of warm trees. */
  4: required i32 lit
  /** Number to keep dark; the controller evicts warm trees for it. */
  5: required i32 reserve
}

/** Warm trees: trees that stay lit after their transfer, for the same group. Counts begin at the controller's start. */
struct WarmStatus {
  /** Current number of warm trees. */
  1: required i32 trees
  2: required list<IdleResources> resources
  /** Parts that were granted over an optical switch … */
  3: required i64 opticalGrants
  /** … and those among them that found a warm tree. */
  4: required i64 warmHits
  /** Warm trees that were torn down to keep enough resources dark. */
  5: required i64 evicted
  /** Warm trees of which a request reclaimed resources, and waited until they were disconnected. */
  6: required i64 reclaimed
}

/** Static tree: splitters fixed between ToRs and hosts, without an optical switch. */
struct StaticTreeStatus {
  1: required string name
  /** Rack or host at which it begins. */
  2: required string root
  /** Racks and hosts at which it ends. */
  3: required list<string> leaves
  /** Reservation that holds it. */
  4: optional i32 reservation
  /** Reason if it is unusable. */
  5: optional string unusable
}

/** Configuration and current state of the optical fabric. */
struct FabricStatus {
  1: required list<RackStatus> racks
  2: required list<SplitterStatus> splitters
  3: required list<OpticalSwitchStatus> opticalSwitches
  /** Light trees that the caller may see. */
  4: required list<LightTreeStatus> lightTrees
  /** Rate of an optical port. */
  5: required i64 opticalRateBitsPerSecond
  /** Pending parts of the requests that the caller may see. */
  6: required i32 pendingParts
  /** Warnings about the controller, one sentence each: it is in safe mode, its journal is in memory, … */
  7: optional list<string> warnings
  /** Warm trees; for operators only, and only if the controller keeps trees warm. */
  8: optional WarmStatus warm
  /** Static trees, if any. */
  9: optional list<StaticTreeStatus> staticTrees
  /** As in RequestStatus. A standby knows nothing about devices. */
  10: optional i64 staleMs
  /** As in RequestStatus. */
  11: optional i64 journalSequence
}

/** Version and features of a server. */
struct Version {
  /** Version of the software. */
  1: required string software
  /** Version of this interface. */
  2: required i32 protocol
  /** Optional features of this server; all others throw Unsupported. */
  3: required list<string> features
  /** OpenFlow framework in use: "os-ken" or "ryu". */
  4: optional string openflowFramework
}

// -------------------------------------------------------------------------------------------------- exceptions

/** Rejection of a call: it breaks a rule, exceeds the fabric, or cannot be served at this time. */
exception Rejected {
  /**
   * unknown_host, sender_among_receivers, no_receivers, duplicate_receivers, bad_bytes, bad_key, bad_rate, bad_time,
   * group_too_wide, power_budget, too_many_groups, …; later versions may add codes. After device_disconnected,
   * device_failed, light_lost, no_port, no_free_output, no_resources, busy, draining, safe_mode, too_many_requests,
   * too_many_pending, too_many_waiting and too_many_calls, the same call may succeed later.
   */
  1: required string code
  /** Complete message for people, with the action to take if there is one. */
  2: required string message
  /** With group_too_wide: the maximum number of racks, including the sender's, that this fabric can serve. */
  3: optional i32 maxRacks
}
/**
 * No event within the timeout of the call. The request is unchanged and still waits; `message` has the reason. A client
 * that disconnects after a `request()` that timed out gives up its request (see there).
 */
exception TimedOut { 1: required string message }
/** The request has ended in this final state for this reason; the call changed nothing. */
exception Ended { 1: required PartState state, 2: required string reason }
/** The controller does not know a request with this key, has forgotten it, or it belongs to another tenant. */
exception UnknownRequest { 1: required string key }
/** Another request with different content uses this key. */
exception KeyReused { 1: required string key }
/** The caller lacks permission: it is not logged in, belongs to another tenant, or lacks the required role. */
exception Denied { 1: required string message }
/** This server does not support the feature or optional field; it never ignores one. */
exception Unsupported { 1: required string feature, 2: required string message }
/** This controller is a standby; `address` is that of the leader, if known. */
exception NotLeader { 1: optional string address }

// ---------------------------------------------------------------------------------------------------- services

/** Service for applications. */
service Blast {
  /** Submit a request and return at once. It stays until it is served, withdrawn or expired. */
  RequestStatus submit(1: MulticastRequest request)
    throws (1: Rejected rejected, 2: KeyReused keyReused, 3: Unsupported unsupported, 4: Denied denied, 5: NotLeader notLeader)

  /**
   * Wait for the first event with a sequence number above `afterSequence` and return it. The controller keeps the latest
   * events of each request; if this event was dropped, the call returns the oldest one. Throws `Ended` if the request
   * has ended and has no more events, and `Rejected` (too_many_waiting) if too many calls wait already.
   */
  Event awaitEvent(1: string key, 2: i64 afterSequence, 3: i64 timeoutMs)
    throws (1: TimedOut notYet, 2: UnknownRequest unknownRequest, 3: Denied denied, 4: NotLeader notLeader,
            5: Ended ended, 6: Rejected rejected)

  /**
   * Submit a request and wait for its first grant, in one round trip. If the client disconnects before the grant (also
   * after `TimedOut`), the controller withdraws the request after a short grace period, unless the client reconnects and
   * calls `request` with the same key. Use `submit` for a request that outlives its connection: the controller does not
   * withdraw a request for which a client has called `submit`, before or after `request`.
   */
  Grant request(1: MulticastRequest request, 2: i64 timeoutMs)
    throws (1: Rejected rejected, 2: KeyReused keyReused, 3: TimedOut notYet, 4: Ended ended, 5: Unsupported unsupported, 6: Denied denied, 7: NotLeader notLeader)

  /** Change a pending or active request. Returns when the change is in effect; a rejection changes nothing. */
  RequestStatus extend(1: string key, 2: Extension extension)
    throws (1: Rejected rejected, 2: Ended ended, 3: UnknownRequest unknownRequest, 4: Unsupported unsupported, 5: Denied denied, 6: NotLeader notLeader)

  /** Finish the transfer of a part and release its resources. Idempotent. */
  RequestStatus finish(1: string key, 2: i32 part, 3: TransferReport report)
    throws (1: Ended ended, 2: UnknownRequest unknownRequest, 3: Rejected rejected, 4: Denied denied, 5: NotLeader notLeader)

  /** Withdraw a pending or active request and release its resources. */
  RequestStatus withdraw(1: string key)
    throws (1: Ended ended, 2: UnknownRequest unknownRequest, 3: Denied denied, 4: NotLeader notLeader, 5: Rejected rejected)

  /** Return the status of a request, also after its end while the controller remembers its key. */
  RequestStatus status(1: string key)
    throws (1: UnknownRequest unknownRequest, 2: Denied denied, 3: NotLeader notLeader)

  /** List requests in order of arrival. `limit` is between 1 and 1000. */
  RequestPage listRequests(1: RequestFilter filter, 2: i32 limit, 3: string cursor)
    throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported, 4: NotLeader notLeader)

  /** Explain what blocks a request (feature "explain"). */
  Explanation explain(1: string key)
    throws (1: UnknownRequest unknownRequest, 2: Unsupported unsupported, 3: Denied denied, 4: NotLeader notLeader)

  /** Return the current racks, splitters, optical switches and light trees. */
  FabricStatus fabric() throws (1: Denied denied, 2: NotLeader notLeader)

  /** Return version and features of this server. Needs no authentication. */
  Version version()

  /** Check the connection, without involving the core. Needs no authentication. */
  void ping()

  /** Authenticate this connection with a token (feature "login"). */
  void login(1: string token) throws (1: Denied denied, 2: Unsupported unsupported)
}

/** Progress of a drain (feature "drain"). */
struct DrainStatus {
  1: required bool draining
  /** Parts that are active or being configured. */
  2: required i32 active
  /** Pending parts that were admitted; the controller still serves them. */
  3: optional i32 pending
}

/** Device, or reservation on one, that a reconciliation did not compare. */
struct NotCompared { 1: required string element, 2: required string reason }

/** Result of a reconciliation (feature "reconcile"). */
struct ReconcileReport {
  1: required bool dryRun
  2: required list<string> commands
  3: required list<string> foreign
  /** Devices that were read, named as in `elements`. The report covers no other device. */
  4: optional list<string> compared
  /** Disconnected devices, and reservations that are being changed. */
  5: optional list<NotCompared> notCompared
}

/** Difference between the configuration and the probed fibers (feature "verify"). */
struct FiberFault { 1: required string element, 2: required string message }
/** Result of a fiber verification (feature "verify"). */
struct FiberReport {
  1: required list<FiberFault> faults
  /** Elements that were not probed: "ELEMENT: reason". */
  2: required list<string> skipped
  /** Number of probed elements. The report covers no other element. */
  3: optional i32 probed
}

/** State of a hardware element. */
struct ElementStatus {
  /** port:RACK/PORT, splitter:NAME, switch:NAME or tor:DATAPATH. */
  1: required string name
  /** free, reserved, unusable or disconnected. */
  2: required string state
  /** Reason if it is unusable or disconnected. */
  3: optional string reason
  /** Reservation that holds it. */
  4: optional i32 reservation
}

/** Entry of the journal (feature "journal"). */
struct JournalEntry { 1: required i64 sequence, 2: required string kind, 3: required string json }

/** Service for operators. */
service BlastOperator extends Blast {
  /** Start (true) or end (false) a drain, or only return its state (absent); active transfers go on (feature "drain"). */
  DrainStatus drain(1: bool enable)
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Compare devices with the journal and, unless `dryRun`, repair differences (feature "reconcile"). */
  ReconcileReport reconcile(1: bool dryRun)
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Probe the free fibers and splitter outputs (feature "verify"). */
  FiberReport verifyFabric()
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Return all hardware elements with their state. */
  list<ElementStatus> elements() throws (1: Denied denied, 2: NotLeader notLeader)
  /** Take an element out of use; a transfer that uses it continues. */
  void quarantine(1: string element, 2: string reason)
    throws (1: Rejected rejected, 2: Denied denied, 3: NotLeader notLeader)
  /** Return a quarantined element to use: it may serve the next request. */
  void releaseElement(1: string element) throws (1: Rejected rejected, 2: Denied denied, 3: NotLeader notLeader)
  /**
   * End safe mode (feature "safe_mode"). A controller enters safe mode, and rejects every change with the code
   * "safe_mode", after it exits by an internal error and does so again soon after its next start.
   */
  void resume() throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported)
  /**
   * Hand leadership to a standby (feature "standby"). Returns before the change of leadership. Throws Rejected
   * (code "no_standby") if there is no standby. Lit trees stay lit.
   */
  void stepDown() throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported, 4: NotLeader notLeader)
  /** Return journal entries after a sequence number (feature "journal"). */
  list<JournalEntry> journal(1: i64 afterSequence, 2: i32 limit) throws (1: Denied denied, 2: Unsupported unsupported)
}
