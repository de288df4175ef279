/**
 * Blast: the public interface between applications (or operators) and the controller.
 *
 * Transport: TFramedTransport, TBinaryProtocol (TCompactProtocol is accepted). A frame is at most 1 MiB.
 * Structs grow by optional fields only. Units stand in the names: Bytes, Ms (relative to receipt),
 * BitsPerSecond, Dbm. A request is named by the key that the client chooses; submitting the same key with the same
 * content again gives the same answer.
 */
namespace py blast_api
namespace java org.blast

// ---------------------------------------------------------------------------------------------------- requests

/** A multicast that an application wants to send. Hosts are named as in the controller's config. */
struct MulticastRequest {
  /** Chosen by the client, at most 64 characters, unique within the tenant, remembered for an hour after the end. */
  1: required string key
  /** Host that sends. */
  2: required string sender
  /** Hosts that receive: at least one, no duplicates, without the sender. */
  3: required list<string> receivers
  /** Size of the data, > 0. Each receiver gets all of it. */
  4: required i64 bytes
  /** Feature "tenants"; the default tenant is "default". */
  5: optional string tenant
  /**
   * The sender will not go faster than this; it lengthens the estimated service time. Refused (bad_rate) below the least
   * rate that the server grants, and (lease_too_long) where the data would take longer than a lease may last.
   */
  6: optional i64 maxBitsPerSecond
  /** Withdrawn by the controller (state expired) when still pending after this time. Default: no limit. */
  7: optional i64 pendingTimeoutMs
  /** Feature "deadlines": wanted end of the transfer; the policy "edf" goes by it. */
  8: optional i64 deadlineMs
  /** Feature "priorities": larger is more urgent. */
  9: optional i32 priority
  /** Feature "splitting": receivers may be served in several parts. */
  10: optional bool maySplit
  /** Feature "pausing": the transfer may be interrupted at a byte position, see `Extension.progressBytes`. */
  11: optional bool mayPause
}

/** A part's state. Final: DONE, WITHDRAWN, EXPIRED, FAILED, REJECTED. */
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

/** How long each step of a grant took, measured by the controller. */
struct StepTimings {
  /** Deciding: admission, allocation, tree. */
  1: optional double computeMs
  /** First OpenFlow message sent to last barrier reply. */
  2: optional double openflowMs
  /** First TL1 command sent to last completion. */
  3: optional double opticalMs
  /** Request received to grant handed to the network. */
  4: optional double totalMs
}

/** Light at a leaf, from the losses that the operator has given; a grant has none where there are no losses. */
struct LeafMargin {
  1: required string rack
  /** Typical received power. */
  2: optional double receivedDbm
  /** How far the least power is above what the receiver needs. */
  3: optional double sensitivityMarginDb
  /** How far the most power is below what the receiver stands. */
  4: optional double overloadMarginDb
  5: optional double minDbm
  6: optional double maxDbm
  /** The element that binds the smaller margin. */
  7: optional string limitingElement
}

/** Permission to transmit over light to a group of receivers. */
struct Grant {
  1: required string key
  /** Which part of the request this grant serves, from 0. */
  2: required i32 part
  3: required list<string> receivers
  /** Send UDP datagrams to this IPv4 multicast address … */
  4: required string groupAddress
  /** … and, by convention, this port. */
  5: required i32 groupPort
  /** Rate of the light path in bits on the wire per second: never send faster. */
  6: required i64 rateBitsPerSecond
  /** How long the transfer takes at that rate. */
  7: required i64 estimatedServiceMs
  /** The resources are taken back after this time from the grant on, unless extended. */
  8: required i64 leaseMs
  /** First byte to send (0, or where a paused transfer continues). */
  9: required i64 firstByte
  /** Receivers of the request that no grant serves yet. */
  10: required list<string> pendingReceivers
  /** Identifies the light tree on devices (lower half of the OpenFlow cookie). */
  11: required i32 reservation
  12: optional StepTimings timings
  /** The smallest margin first; of very many leaves, or in a list of requests, only the first ones. */
  13: optional list<LeafMargin> margins
}

/** Something that happened to a request. */
enum EventKind {
  GRANTED = 1
  PAUSED = 2
  /** The grant changed (extend); `grant` is the new one. */
  CHANGED = 3
  REVOKED = 4
  ENDED = 5
}

/** One thing that happened to one part of a request. */
struct Event {
  /** Counts from 1 for each request. A gap means that older events were dropped: `status` tells how things stand. */
  1: required i64 sequence
  2: required EventKind kind
  3: required i32 part
  4: optional Grant grant
  /** Why, in one sentence, where there is something to say. */
  5: optional string reason
  /** With ENDED: the final state. */
  6: optional PartState state
}

/** How the transfer went, for the operator's statistics: it changes nothing. */
struct TransferReport {
  1: optional i64 bytesSent
  /** From the first datagram to the last receiver's confirmation. */
  2: optional i64 durationMs
  /** Sent again, over the packet network. */
  3: optional i64 repairedBytes
  /** Receivers that do not have the whole data. */
  4: optional list<string> failedReceivers
}

/** A set of a request's receivers that one light tree serves, and how far it is. */
struct PartStatus {
  /** From 0. */
  1: required i32 part
  2: required PartState state
  3: required list<string> receivers
  4: optional Grant grant
  /** Why it waits or why it ended, in one sentence. */
  5: optional string reason
  /** Time left on the lease of an active part. */
  6: optional i64 leaseLeftMs
  /** What the sender has told of a part that is done. */
  7: optional TransferReport report
}

/** A request as it is now, extensions included. */
struct RequestStatus {
  1: required string key
  2: required string tenant
  /** Follows from its parts' states. */
  3: required PartState state
  4: required string sender
  5: required list<string> receivers
  6: required i64 bytes
  /** Milliseconds since the controller received the request. */
  7: required i64 ageMs
  8: required list<PartStatus> parts
  /** Sequence number of the latest event, 0 if none. */
  9: required i64 latestSequence
  /**
   * Of a controller that stands by, or that shares a journal and does not know whether what it wrote last counts: so
   * many milliseconds ago, at most, this was so.
   */
  10: optional i64 staleMs
  /**
   * Where several controllers share a journal: all up to this entry of it is told of. An answer with a
   * smaller number than an earlier answer had is older than that one.
   */
  11: optional i64 journalSequence
}

/** What to change of a pending or active request; at least one field. Refused whole, or done whole. */
struct Extension {
  1: optional list<string> addReceivers
  2: optional list<string> removeReceivers
  /** Added to the lease; refused (lease_too_long) where that would last longer than the server lets any. */
  3: optional i64 addLeaseMs
  /** Added to the size of the data. */
  4: optional i64 addBytes
  /**
   * Feature "pausing", on its own: all bytes before this one have been sent. A request that may pause must say so once
   * in each lease: at the lease's end it then keeps its light, or is paused and continues at this byte; who says
   * nothing is taken to have vanished.
   */
  5: optional i64 progressBytes
  /** With `progressBytes`: of which part; absent: 0. */
  6: optional i32 part
}

/** Which requests to list; what is absent does not restrict. */
struct RequestFilter {
  1: optional string tenant
  2: optional list<PartState> states
}

/** Some of the requests, and where the next ones begin. */
struct RequestPage {
  1: required list<RequestStatus> requests
  /** Give this to the next call; absent on the last page. */
  2: optional string nextCursor
  /** As in RequestStatus. */
  3: optional i64 staleMs
  /** As in RequestStatus. */
  4: optional i64 journalSequence
}

/** Feature "explain". */
struct Explanation {
  1: required string key
  2: required string message
  3: optional list<string> blockers
  4: optional i64 estimatedStartMs
  5: optional string suggestion
}

// ------------------------------------------------------------------------------------------------------ fabric

/** An optical port of a rack: its transmit fiber goes to the switch's input, its receive fiber comes from an output. */
struct OpticalPortStatus {
  /** OpenFlow port of the rack's datapath. */
  1: required i32 port
  2: required string opticalSwitch
  3: required i32 switchInput
  4: required i32 switchOutput
  /** Reservation that holds it. */
  5: optional i32 reservation
  /** Why it cannot be used. */
  6: optional string unusable
}

/** A rack: a datapath and a set of its ports. */
struct RackStatus {
  1: required string name
  /** Datapath id in hexadecimal; several racks may share one. */
  2: required string datapath
  /** Whether its ToR is connected to the controller. */
  3: required bool connected
  4: required list<OpticalPortStatus> opticalPorts
  5: required list<string> hosts
  /** Rate of the access link to the packet network, either way, of each host for which the config has one. */
  6: optional map<string, i64> accessBitsPerSecond
  /** Rate of the rack's uplink to the other racks, either way, where the config has one. */
  7: optional i64 uplinkBitsPerSecond
  /** Address of each host on the data network. */
  8: optional map<string, string> addresses
}

/** A passive splitter: the switch's output feeds it, its outputs come back into the switch's inputs. */
struct SplitterStatus {
  1: required string name
  /** How many outputs it has. */
  2: required i32 fanOut
  3: required string opticalSwitch
  4: required i32 switchOutput
  5: required list<i32> switchInputs
  /** Reservation that holds it. */
  6: optional i32 reservation
  /** Why it cannot be used. */
  7: optional string unusable
}

/** An optical circuit switch. */
struct OpticalSwitchStatus {
  1: required string name
  2: required bool connected
  /** Why it is away. */
  3: optional string reason
}

/** One input fiber led to one output fiber. */
struct CrossConnectStatus {
  1: required string opticalSwitch
  2: required i32 switchInput
  3: required i32 switchOutput
}

/** A light tree that devices hold or are being told to hold. */
struct LightTreeStatus {
  1: required i32 reservation
  /** The request that it serves … */
  2: required string key
  /** … and which part of it. */
  3: required i32 part
  /** configuring, lit, changing, idle or releasing. */
  4: required string state
  5: required string groupAddress
  6: required string rootRack
  7: required list<string> leafRacks
  /** From the root on; empty for a group of one rack or two. */
  8: required list<string> splitters
  9: required list<CrossConnectStatus> crossConnects
}

/** Pieces of one kind that no transfer uses. */
struct IdleResources {
  1: required string opticalSwitch
  /** Splitters of so many outputs; absent: the optical ports of all racks. */
  2: optional i32 fanOut
  /** Dark, or being given back. */
  3: required i32 dark
  /** In trees that are kept lit. */
  4: required i32 lit
  /** So many stay dark: for them trees that are kept lit give way. */
  5: required i32 reserve
}

/** Trees that are kept lit when their transfer is done, for the same group again. Counts begin with the controller. */
struct WarmStatus {
  /** Trees that are kept lit now. */
  1: required i32 trees
  2: required list<IdleResources> resources
  /** Parts that were given light of an optical switch … */
  3: required i64 opticalGrants
  /** … and those of them that found their group's tree still lit. */
  4: required i64 warmHits
  /** Trees that were taken down so that others find enough dark pieces. */
  5: required i64 evicted
  /** Trees of which a request took pieces, for which it had to wait until they were disconnected. */
  6: required i64 reclaimed
}

/** A static tree: splitters fixed between ToRs and hosts, without an optical switch. */
struct StaticTreeStatus {
  1: required string name
  /** A rack, at whose ToR it begins, or a host. */
  2: required string root
  /** Racks, at whose ToRs it ends, and hosts. */
  3: required list<string> leaves
  /** Reservation that holds it. */
  4: optional i32 reservation
  /** Why it cannot be used. */
  5: optional string unusable
}

/** The optical fabric as the config declares it and as it is now. */
struct FabricStatus {
  1: required list<RackStatus> racks
  2: required list<SplitterStatus> splitters
  3: required list<OpticalSwitchStatus> opticalSwitches
  /** Those that the caller may see. */
  4: required list<LightTreeStatus> lightTrees
  /** Rate of an optical port. */
  5: required i64 opticalRateBitsPerSecond
  /** Parts that wait for light, among the requests that the caller may see. */
  6: required i32 pendingParts
  /** What to know of the controller itself, a sentence each: that it is safe_mode, that its journal is in memory, … */
  7: optional list<string> warnings
  /** For operators, and where trees are kept lit at all. */
  8: optional WarmStatus warm
  /** Where there are any. */
  9: optional list<StaticTreeStatus> staticTrees
  /** As in RequestStatus; of devices a controller that stands by knows nothing. */
  10: optional i64 staleMs
  /** As in RequestStatus. */
  11: optional i64 journalSequence
}

/** What a server is and serves. */
struct Version {
  /** Version of the software, for people. */
  1: required string software
  /** Version of this interface. */
  2: required i32 protocol
  /** Optional features that this server serves; everything else throws Unsupported. */
  3: required list<string> features
  /** OpenFlow framework that runs: "os-ken" or "ryu". */
  4: optional string openflowFramework
}

// -------------------------------------------------------------------------------------------------- exceptions

/** The request cannot be had, now or ever: it breaks a rule or exceeds the fabric. */
exception Rejected {
  /** unknown_host, sender_among_receivers, no_receivers, duplicate_receivers, bad_bytes, bad_key, bad_rate, bad_time,
      group_too_wide, power_budget, too_many_groups, … : new codes may come. With device_disconnected, device_failed, light_lost, no_port,
      no_free_output, no_resources, busy, draining, safe_mode, too_many_requests, too_many_pending, too_many_waiting and
      too_many_calls the same call may succeed at another time. */
  1: required string code
  /** For people, whole, and with what to do where there is something. */
  2: required string message
  /** With group_too_wide: the largest number of racks, sender's included, that this fabric could serve. */
  3: optional i32 maxRacks
}
/**
 * Nothing happened within the time that the caller gave; the request is unchanged and goes on waiting. `sentence` says
 * for what. Who then disconnects after `request()` is taken to have given up (see there).
 */
exception TimedOut { 1: required string message }
/** The request is over, in this final state and for this reason; nothing has been changed. */
exception Ended { 1: required PartState state, 2: required string reason }
/** The controller knows no request with this key, or not any more, or it is another tenant's. */
exception UnknownRequest { 1: required string key }
/** The key is in use by a request with other content. */
exception KeyReused { 1: required string key }
/** The caller is not who may do this: not logged in, another tenant, or without the role that it takes. */
exception Denied { 1: required string message }
/** A feature or optional field that this server does not serve: refused, never ignored. */
exception Unsupported { 1: required string feature, 2: required string message }
/** This controller stands by; `address`, where known, is that of the one that decides. */
exception NotLeader { 1: optional string address }

// ---------------------------------------------------------------------------------------------------- services

/** For applications. */
service Blast {
  /** Ask for a multicast and return at once. The request stays until served, withdrawn or out of patience. */
  RequestStatus submit(1: MulticastRequest request)
    throws (1: Rejected rejected, 2: KeyReused keyReused, 3: Unsupported unsupported, 4: Denied denied, 5: NotLeader notLeader)

  /**
   * The first event with a sequence number above `afterSequence`, as soon as there is one. Of each request the latest few
   * are kept: who asks for older ones gets the oldest of these. `Ended` when the request is over and there is no more
   * to come; `Rejected` (too_many_waiting) when as many calls wait already as may.
   */
  Event awaitEvent(1: string key, 2: i64 afterSequence, 3: i64 timeoutMs)
    throws (1: TimedOut notYet, 2: UnknownRequest unknownRequest, 3: Denied denied, 4: NotLeader notLeader,
            5: Ended ended, 6: Rejected rejected)

  /**
   * Submit and wait for the first grant, in one round trip. A client that disconnects before the grant (also after
   * `TimedOut`) is taken to have given up: its request is withdrawn after a short grace, unless it is back by then and
   * calls `request` with the same key again. Use `submit` for a request that outlives its connection: what anybody has
   * asked for by `submit`, before or after, is not withdrawn.
   */
  Grant request(1: MulticastRequest request, 2: i64 timeoutMs)
    throws (1: Rejected rejected, 2: KeyReused keyReused, 3: TimedOut notYet, 4: Ended ended, 5: Unsupported unsupported, 6: Denied denied, 7: NotLeader notLeader)

  /** Change a pending or active request. Answers when the change is in force; a refusal leaves everything as it was. */
  RequestStatus extend(1: string key, 2: Extension extension)
    throws (1: Rejected rejected, 2: Ended ended, 3: UnknownRequest unknownRequest, 4: Unsupported unsupported, 5: Denied denied, 6: NotLeader notLeader)

  /** The transfer of this part is over: its resources go back. Doing so twice is the same as once. */
  RequestStatus finish(1: string key, 2: i32 part, 3: TransferReport report)
    throws (1: Ended ended, 2: UnknownRequest unknownRequest, 3: Rejected rejected, 4: Denied denied, 5: NotLeader notLeader)

  /** Give up a pending or active request; its resources go back. */
  RequestStatus withdraw(1: string key)
    throws (1: Ended ended, 2: UnknownRequest unknownRequest, 3: Denied denied, 4: NotLeader notLeader, 5: Rejected rejected)

  /** How far a request is; also after its end, as long as its key is remembered. */
  RequestStatus status(1: string key)
    throws (1: UnknownRequest unknownRequest, 2: Denied denied, 3: NotLeader notLeader)

  /** In order of arrival. `limit` is between 1 and 1000. */
  RequestPage listRequests(1: RequestFilter filter, 2: i32 limit, 3: string cursor)
    throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported, 4: NotLeader notLeader)

  /** Feature "explain": what blocks a request. */
  Explanation explain(1: string key)
    throws (1: UnknownRequest unknownRequest, 2: Unsupported unsupported, 3: Denied denied, 4: NotLeader notLeader)

  /** Racks, splitters, optical switches and light trees as the controller sees them at this moment. */
  FabricStatus fabric() throws (1: Denied denied, 2: NotLeader notLeader)

  /** What this server is and serves; may be asked by anyone. */
  Version version()

  /** A sign of life: answered without asking the core anything; may be asked by anyone. */
  void ping()

  /** Feature "login": say by a token who the client is, for the rest of this connection. */
  void login(1: string token) throws (1: Denied denied, 2: Unsupported unsupported)
}

/** Feature "drain". */
struct DrainStatus {
  1: required bool draining
  /** Parts that have light, or are getting it. */
  2: required i32 active
  /** Parts that were admitted and wait: they are served, drained or not. */
  3: optional i32 pending
}

/** A device, or a reservation on one, that was not compared with what it should hold. */
struct NotCompared { 1: required string element, 2: required string reason }

/** Feature "reconcile". */
struct ReconcileReport {
  1: required bool dryRun
  2: required list<string> commands
  3: required list<string> foreign
  /** The devices that were read, as `elements` names them: of no other anything is said. */
  4: optional list<string> compared
  /** All that was not compared: devices that are away, reservations that are being changed. */
  5: optional list<NotCompared> notCompared
}

/** Feature "verify": one difference between the config and what probe frames found. */
struct FiberFault { 1: required string element, 2: required string message }
struct FiberReport {
  1: required list<FiberFault> faults
  /** What was not probed: "ELEMENT: why". */
  2: required list<string> skipped
  /** How many elements were probed: of no other anything is said. */
  3: optional i32 probed
}

/** A piece of hardware. */
struct ElementStatus {
  /** port:RACK/PORT, splitter:NAME, switch:NAME or tor:DATAPATH. */
  1: required string name
  /** free, reserved, unusable or away. */
  2: required string state
  /** Why it is unusable or away. */
  3: optional string reason
  /** The reservation that holds it. */
  4: optional i32 reservation
}

/** Feature "journal". */
struct JournalEntry { 1: required i64 sequence, 2: required string kind, 3: required string json }

/** For operators. */
service BlastOperator extends Blast {
  /** Feature "drain": admit nothing new (true) or admit again (false), what is active goes on; absent only asks. */
  DrainStatus drain(1: bool enable)
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Feature "reconcile". */
  ReconcileReport reconcile(1: bool dryRun)
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Feature "verify". */
  FiberReport verifyFabric()
    throws (1: Denied denied, 2: Unsupported unsupported, 3: Rejected rejected, 4: NotLeader notLeader)
  /** Every piece of hardware and its state. */
  list<ElementStatus> elements() throws (1: Denied denied, 2: NotLeader notLeader)
  /** Take an element out of use; what it serves now goes on. */
  void quarantine(1: string element, 2: string reason)
    throws (1: Rejected rejected, 2: Denied denied, 3: NotLeader notLeader)
  /** Put an element that was quarantined back into use: it may serve the very next request. */
  void releaseElement(1: string element) throws (1: Rejected rejected, 2: Denied denied, 3: NotLeader notLeader)
  /**
   * Feature "safe_mode": let a controller that is holding decide again. It holds, and refuses every change with the code
   * "safe_mode", after it ended by an error of its own and did so again soon after its next start.
   */
  void resume() throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported)
  /**
   * Feature "standby": let another controller lead. Refused where there is none (Rejected, code "no_standby"); answered
   * before it happens. Light goes on.
   */
  void stepDown() throws (1: Rejected rejected, 2: Denied denied, 3: Unsupported unsupported, 4: NotLeader notLeader)
  /** Feature "journal". */
  list<JournalEntry> journal(1: i64 afterSequence, 2: i32 limit) throws (1: Denied denied, 2: Unsupported unsupported)
}
