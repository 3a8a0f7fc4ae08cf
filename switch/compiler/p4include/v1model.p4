// The v1model architecture: parser, checksum verification, ingress, egress, checksum computation, deparser.
// What the objects here do is described in BMv2's documentation of simple_switch.
#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

// From 20200408 on, indices of counters, meters and registers may have any width.
#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif
const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind { range, optional, selector }

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#define V1MODEL_PORT_TYPE PortId_t
#define V1MODEL_INDEX_TYPE I
#else
#define V1MODEL_PORT_TYPE bit<9>
#define V1MODEL_INDEX_TYPE bit<32>
#endif

@metadata @name("standard_metadata")
struct standard_metadata_t {
    V1MODEL_PORT_TYPE ingress_port;
    V1MODEL_PORT_TYPE egress_spec;      // written in ingress: where the packet is to go
    V1MODEL_PORT_TYPE egress_port;      // valid in egress
    bit<32> instance_type;
    bit<32> packet_length;              // bytes
    // Queueing, valid in egress: times in microseconds, depths in packets.
    @alias("queueing_metadata.enq_timestamp") bit<32> enq_timestamp;
    @alias("queueing_metadata.enq_qdepth") bit<19> enq_qdepth;
    @alias("queueing_metadata.deq_timedelta") bit<32> deq_timedelta;
    @alias("queueing_metadata.deq_qdepth") bit<19> deq_qdepth;
    // Microseconds since the switch started.
    @alias("intrinsic_metadata.ingress_global_timestamp") bit<48> ingress_global_timestamp;
    @alias("intrinsic_metadata.egress_global_timestamp") bit<48> egress_global_timestamp;
    @alias("intrinsic_metadata.mcast_grp") bit<16> mcast_grp;       // 0: no multicast
    @alias("intrinsic_metadata.egress_rid") bit<16> egress_rid;     // which copy of a multicast packet
    bit<1> checksum_error;              // 1: verify_checksum found a wrong one
    error parser_error;
    @alias("intrinsic_metadata.priority") bit<3> priority;
}

// --- state: counters, meters, registers ---

enum CounterType { packets, bytes, packets_and_bytes }
enum MeterType { packets, bytes }

#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2

// An array of `size` counters.
extern counter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    counter(bit<32> size, CounterType type);
    void count(in V1MODEL_INDEX_TYPE index);
}

// One counter for every entry of the table that names it in its property `counters`.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

// An array of two-rate three-colour meters.
extern meter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in V1MODEL_INDEX_TYPE index, out T result);
}

// One meter for every entry of the table that names it in its property `meters`.
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

// An array of `size` values that outlive packets. Reading behind its end gives 0, and writing there does nothing.
// BMv2 has no such rule: its debug build leaves `result` as it was, its release build reads and writes other memory.
#if V1MODEL_VERSION >= 20200408
extern register<T, I>
#else
extern register<T>
#endif
{
    register(bit<32> size);
    @noSideEffects
    void read(out T result, in V1MODEL_INDEX_TYPE index);
    void write(in V1MODEL_INDEX_TYPE index, in T value);
}

// Actions kept apart from the entries that use them: one per entry, or one chosen by a hash.
extern action_profile {
    action_profile(bit<32> size);
}

enum HashAlgorithm { crc32, crc32_custom, crc16, crc16_custom, random, identity, csum16, xor16 }

extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

// --- functions ---

// A number from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

// base + hash(data) % max
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

// Send `data` to the control plane.
extern void digest<T>(in bit<32> receiver, in T data);

// Drop the packet at the end of this control, unless egress_spec or mcast_grp is set again before.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

// Checksums: for VerifyChecksum and ComputeChecksum; with_payload adds what follows the headers in `data`.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum,
                                               HashAlgorithm algo);

enum CloneType { I2E, E2E }

// Copies of the packet and further rounds through the switch. `index` names the metadata fields to keep:
// those annotated @field_list(index).
extern void clone(in CloneType type, in bit<32> session);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
extern void resubmit_preserving_field_list(bit<8> index);
extern void recirculate_preserving_field_list(bit<8> index);

// What programs of before 2020 call: data is what is kept of the metadata.
@deprecated("write mark_to_drop(standard_metadata)")
extern void mark_to_drop();
@deprecated("annotate the fields with @field_list(N) and write clone_preserving_field_list(type, session, N)")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
@deprecated("annotate the fields with @field_list(N) and write resubmit_preserving_field_list(N)")
extern void resubmit<T>(in T data);
@deprecated("annotate the fields with @field_list(N) and write recirculate_preserving_field_list(N)")
extern void recirculate<T>(in T data);

// Keep only the first `length` bytes of the packet as it leaves.
extern void truncate(in bit<32> length);

extern void assert(in bool check);
extern void assume(in bool check);
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// --- the pipeline ---

parser Parser<H, M>(packet_in b, out H parsedHdr, inout M meta, inout standard_metadata_t standard_metadata);
control VerifyChecksum<H, M>(inout H hdr, inout M meta);
@pipeline
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);
@pipeline
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);
control ComputeChecksum<H, M>(inout H hdr, inout M meta);
@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p, VerifyChecksum<H, M> vr, Ingress<H, M> ig, Egress<H, M> eg,
                       ComputeChecksum<H, M> ck, Deparser<H> dep);

#endif
