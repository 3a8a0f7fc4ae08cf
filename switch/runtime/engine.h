/* The data plane: many switches, their links and ports, and one thread that moves packets through them.
 *
 * The engine is a discrete-event simulation that the real clock paces. Every event has a time in nanoseconds; the
 * engine works through events in order of time, up to what the clock says, and what an event causes carries the
 * event's own time, not the (slightly later) time at which a processor got round to it. So rates and delays are
 * exact on average however late a wake-up is, and with a manual clock a run is the same every time.
 *
 * Functions may be called from any thread but those of the data plane. Counts are packets and bytes, times
 * nanoseconds of CLOCK_MONOTONIC (or of the manual clock, which starts at 0). Functions that return int give 0 or a
 * negative errno.
 */
#ifndef GRADBED_ENGINE_H
#define GRADBED_ENGINE_H

#include <stdint.h>

#include "program.h"

#define GB_MAX_PORTS 512            /* standard_metadata's port fields have 9 bits */
#define GB_MAX_FRAME_BYTES 9234     /* an MTU of 9,216 with Ethernet and one VLAN tag */
#define GB_PRIORITIES 8             /* standard_metadata.priority has 3 bits */
#define GB_NO_PORT UINT32_MAX

struct gb_engine;

/* One direction of a link, in integers. */
struct gb_link_model {
    uint64_t rate_bps;              /* 0: unlimited */
    uint64_t delay_ns;
    uint64_t jitter_ns;             /* the delay is uniform in delay_ns +- jitter_ns, for each packet anew */
    uint64_t loss_threshold;        /* a packet is lost when a uniform 64-bit number is below it */
    uint64_t duplicate_threshold;
    uint64_t seed;
    uint32_t queue_packets;         /* of each priority */
    uint32_t reorder;               /* 0: a packet that draws a short delay waits for those before it */
};

struct gb_switch_options {
    uint32_t cpu_port;              /* or GB_NO_PORT */
    uint32_t drop_port;             /* what mark_to_drop makes of egress_spec */
    uint32_t priorities;            /* 1..GB_PRIORITIES: packets of larger priorities are dropped */
};

#define GB_BACKLOG_NS 10000000      /* shorter stretches say little about a rate: one late packet would show */
#define GB_LATE_COUNTS 24

/* packets and bytes: handed over at the far end, duplicates included. What was offered to the direction is
 * packets - duplicates + losses + queue_drops, once nothing is queued or in flight. A packet dropped by a full queue
 * in front of an egress pipeline counts with its length before egress. */
struct gb_link_statistics {
    uint64_t device_id;
    uint64_t port;
    uint64_t outwards;              /* 1 "out", 0 "in" */
    uint64_t packets, bytes;
    uint64_t queue_drops, queue_drop_bytes;
    uint64_t losses, lost_bytes;
    uint64_t duplicates, duplicate_bytes;
    /* What left a queue that had packets waiting without a break, and the clock time which that took. Only stretches
     * of at least GB_BACKLOG_NS count; the rate that the link achieved is backlogged_bytes * 8 / backlogged_ns. */
    uint64_t backlogged_bytes, backlogged_ns;
};

/* What became of a switch's packets other than leaving it through a port. */
struct gb_device_statistics {
    uint64_t received;              /* packets that began ingress for the first time */
    uint64_t no_program_drops;      /* arrived before a program was loaded */
    uint64_t swap_drops;            /* were inside the old program when another was loaded */
    uint64_t ingress_drops, egress_drops;   /* dropped by the P4 program */
    uint64_t no_port_drops;         /* sent to a port that does not exist, and not kept by its egress */
    uint64_t no_group_drops;        /* sent to a multicast group without replicas */
    uint64_t priority_drops;        /* of a priority that the switch has no queue for */
    uint64_t buffer_drops;          /* longer than GB_MAX_FRAME_BYTES, no room for the headers, or out of memory */
    uint64_t upcall_drops;          /* packet-ins, digests and log lines that the controller was too slow for */
    uint64_t cloned, replicated, resubmitted, recirculated;
};

struct gb_interface_statistics {
    uint64_t device_id;
    uint64_t port;
    uint64_t received, sent;
    uint64_t socket_drops;          /* the kernel dropped them, because the socket's buffer was full */
    uint64_t send_errors;           /* the kernel refused them: interface down, or its queue full */
    uint64_t oversize_drops;
};

struct gb_engine_statistics {
    uint64_t live_packets;          /* taken from the pool and not yet given back */
    uint64_t pool_bytes;
    uint64_t timers_fired;
    uint64_t late_ns_total, late_ns_max;    /* of timers: how long after its time the event was worked on */
    uint64_t late_counts[GB_LATE_COUNTS];   /* [0]: late by less than 1 us; [n]: by 2^(n-1) to 2^n us; last: or more */
};

/* A frame that left through an open port. */
struct gb_drained {
    uint64_t time_ns;
    uint64_t device_id;
    uint32_t port;
    uint32_t length;                /* bytes of data that follow in the buffer */
};

enum gb_upcall_kind { GB_UPCALL_PACKET_IN = 1, GB_UPCALL_DIGEST = 2, GB_UPCALL_LOG = 3 };

struct gb_upcall {
    uint64_t device_id;
    uint32_t kind;
    uint32_t list_id;               /* digests: the learn list */
    uint64_t length;                /* bytes of data: a frame, 64-bit words, or text */
    uint8_t data[];
};

struct gb_replica { uint32_t egress_port, instance; };

/* ---- Life (engine.c) ---- */

struct gb_engine *gb_engine_create(int manual_clock);       /* NULL when out of memory or descriptors */
void gb_engine_free(struct gb_engine *);                    /* stops it first; frees no struct gb_switch */
int gb_engine_start(struct gb_engine *);                    /* the thread; not with a manual clock */
void gb_engine_stop(struct gb_engine *);
/* 1 once no packet is queued, in flight or in a socket; 0 if that took longer than the timeout. */
int gb_engine_quiesce(struct gb_engine *, uint64_t timeout_ns);
/* Manual clock: work through all events up to `nanoseconds` from now. -ELOOP after max_events events. */
int gb_engine_advance(struct gb_engine *, uint64_t nanoseconds, uint64_t max_events);
uint64_t gb_engine_now(struct gb_engine *);
void gb_engine_statistics(struct gb_engine *, struct gb_engine_statistics *);

/* Keep the data plane from the switches' state meanwhile. Waits for one batch at most; hold it briefly. */
void gb_engine_lock(struct gb_engine *);
void gb_engine_unlock(struct gb_engine *);

/* ---- Switches and ports (engine_control.c) ---- */

int gb_engine_add_switch(struct gb_engine *, uint64_t device_id, const struct gb_switch_options *);
int gb_engine_has_port(struct gb_engine *, uint64_t device_id, uint32_t port);     /* 0 or 1 */
/* 1, or 0 while there is no such port, its link is cut, or its interface is down or without carrier. Members of action
 * selectors that watch the port are left out meanwhile. */
int gb_engine_port_up(struct gb_engine *, uint64_t device_id, uint32_t port);
/* The time at which the switch was added: its timestamps count from there. 0 if there is no such switch. */
uint64_t gb_engine_switch_start(struct gb_engine *, uint64_t device_id);
/* Let the switch run `state` (NULL: no program) from the next packet on, without multicast groups and clone sessions.
 * The caller keeps owning both old and new. */
int gb_engine_load(struct gb_engine *, uint64_t device_id, struct gb_switch *state);
int gb_engine_add_link(struct gb_engine *, uint64_t device_a, uint32_t port_a, uint64_t device_b, uint32_t port_b,
                       const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a);
int gb_engine_add_open_port(struct gb_engine *, uint64_t device_id, uint32_t port, const struct gb_link_model *in,
                            const struct gb_link_model *out);
int gb_engine_add_interface(struct gb_engine *, uint64_t device_id, uint32_t port, const char *interface,
                            const struct gb_link_model *in, const struct gb_link_model *out);
/* Join two network interfaces by a link, without a pipeline at either end: what arrives at one leaves by the other.
 * They stand for ports of switches that other programs run (Open vSwitch) and that are switches without a program
 * here, or, with port_b GB_NO_PORT, for a host at end b; the link then is both directions of port a. */
int gb_engine_add_wire(struct gb_engine *, uint64_t device_a, uint32_t port_a, const char *interface_a,
                       uint64_t device_b, uint32_t port_b, const char *interface_b,
                       const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a);
/* From now on; what is queued or in flight stays as it is. -EINVAL if the port has no such direction of its own. */
int gb_engine_set_link(struct gb_engine *, uint64_t device_id, uint32_t port, uint32_t outwards,
                       const struct gb_link_model *);
/* Cut the link at the port (up = 0), or mend it: the ports at both ends go down, and what is sent on it in either
 * direction is lost. -EINVAL if the port has no link. */
int gb_engine_set_link_up(struct gb_engine *, uint64_t device_id, uint32_t port, uint32_t up);
int gb_engine_multicast_group_set(struct gb_engine *, uint64_t device_id, uint32_t group,
                                  const struct gb_replica *, uint32_t count);
int gb_engine_multicast_group_delete(struct gb_engine *, uint64_t device_id, uint32_t group);   /* -ENOENT */
int gb_engine_clone_session_set(struct gb_engine *, uint64_t device_id, uint32_t session,
                                const struct gb_replica *, uint32_t count, uint32_t truncate_bytes,
                                uint32_t class_of_service);
int gb_engine_clone_session_delete(struct gb_engine *, uint64_t device_id, uint32_t session);

int gb_engine_inject(struct gb_engine *, uint64_t device_id, uint32_t port, const uint8_t *frame, uint32_t length);
int gb_engine_packet_out(struct gb_engine *, uint64_t device_id, const uint8_t *frame, uint32_t length);
/* The oldest frame that left through an open port; data takes GB_MAX_FRAME_BYTES. 1, or 0 if there is none. */
int gb_engine_drain(struct gb_engine *, struct gb_drained *, uint8_t *data);

uint32_t gb_engine_link_statistics(struct gb_engine *, struct gb_link_statistics *, uint32_t capacity);
uint32_t gb_engine_interface_statistics(struct gb_engine *, struct gb_interface_statistics *, uint32_t capacity);
int gb_engine_device_statistics(struct gb_engine *, uint64_t device_id, struct gb_device_statistics *);

/* ---- Captures (engine_capture.c): pcap files with times of the wall clock, or of the manual clock ---- */

/* Times are in nanoseconds, or in the microseconds of the older format. The engine closes the descriptor in the end,
 * also when this fails. The number of the capture, or a negative errno. */
int gb_engine_capture_open(struct gb_engine *, int descriptor, uint32_t nanoseconds);
/* Record what leaves the port (before the link loses it), or what arrives there. -EEXIST if another capture does. */
int gb_engine_capture_port(struct gb_engine *, uint32_t capture, uint64_t device_id, uint32_t port, uint32_t outwards);
/* Write what is still in memory, and end. The error that ended it earlier, if one did. */
int gb_engine_capture_close(struct gb_engine *, uint32_t capture, uint64_t *packets);

/* ---- From the data plane to the controller (engine_upcall.c) ---- */

/* Which kinds (bits 1 << enum gb_upcall_kind) of upcall somebody listens to; the others are dropped uncounted. */
int gb_engine_listen(struct gb_engine *, uint64_t device_id, uint32_t kinds);
/* The oldest upcall, for gb_upcall_free; NULL after the timeout, or once gb_engine_upcall_close was called. */
struct gb_upcall *gb_engine_upcall_wait(struct gb_engine *, uint64_t timeout_ns);
void gb_upcall_free(struct gb_upcall *);
void gb_engine_upcall_close(struct gb_engine *);

#endif
