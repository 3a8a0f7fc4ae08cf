/* The data plane: many switches, their links and ports, and one thread that moves packets through them.
 *
 * The engine is a discrete-event simulation that the real clock paces. Every event has a time in nanoseconds; the
 * engine works through events in order of time, up to what the clock says, and what an event causes carries the
 * event's own time, not the (slightly later) time at which a processor got round to it. So rates and delays are
 * exact on average however late a wake-up is, and with a manual clock a run is the same every time. Events of the same
 * time are worked on in the order in which they were caused.
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
#define GB_MAX_FRAME_BYTES 65553    /* IPv4's 65,535 with Ethernet and one VLAN tag */
#define GB_MAX_SOCKET_FRAME_BYTES 9234  /* an MTU of 9,216, likewise: of ports that are network interfaces */
#define GB_PRIORITIES 8             /* standard_metadata.priority has 3 bits */
#define GB_NO_PORT UINT32_MAX
#define GB_MAX_LPS 64

struct gb_engine;
struct gb_recorder;

/* One direction of a link, in integers. */
struct gb_link_model {
    uint64_t rate_bps;              /* 0: unlimited */
    uint64_t delay_ns;
    uint64_t jitter_ns;             /* the delay is uniform in delay_ns +- jitter_ns, for each packet anew */
    uint64_t loss_threshold;        /* a packet is lost when a uniform 64-bit number is below it */
    uint64_t duplicate_threshold;
    double bit_error_rate;          /* a frame with a wrong bit is lost */
    uint64_t turn_ns;               /* channels from 1 on take turns of this length; 0: they do not */
    uint32_t queue_packets;         /* of each priority */
    uint32_t reorder;               /* 0: a packet that draws a short delay waits for those before it */
    uint32_t channels;              /* 0, 1: one; else up to GB_PRIORITIES, see gb_engine_add_link */
    uint32_t first_turn;            /* whose turn time 0 is: channel 1 + first_turn */
    uint64_t guard_ns;              /* at the end of each turn nothing begins to be sent */
    uint64_t pfc_xoff_bytes;        /* a switch at the far end that holds more of a priority lets it pause; 0: no PFC */
    uint64_t pfc_xon_bytes;         /* and go on once it holds no more than that */
    uint64_t seed;
};

struct gb_switch_options {
    uint32_t cpu_port;              /* or GB_NO_PORT */
    uint32_t drop_port;             /* what mark_to_drop makes of egress_spec */
    uint32_t priorities;            /* 1..GB_PRIORITIES: packets of larger priorities are dropped */
    uint64_t seed;                  /* of what its programs draw, beside its device id */
    uint32_t lp;             /* 0 to one less than the engine has */
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
    uint64_t entered_bytes;         /* offered to the link so far, with lengths before egress */
    uint64_t channel_bytes[GB_PRIORITIES];  /* handed over at the far end by channel, without duplicates */
    uint64_t queue_drops, queue_drop_bytes;
    uint64_t losses, lost_bytes;
    uint64_t duplicates, duplicate_bytes;
    /* What left a queue that had packets waiting without a break, and the clock time which that took. Only stretches
     * of at least GB_BACKLOG_NS count; the rate that the link achieved is backlogged_bytes * 8 / backlogged_ns. */
    uint64_t backlogged_bytes, backlogged_ns;
    uint64_t queued;                /* packets that wait now, on all channels */
    uint64_t in_flight;             /* packets that are being sent or in flight now, duplicates included */
    uint64_t time_ns;               /* of the engine: all that was due by then has been done */
    /* PFC by priority: pauses that the far end asked for, those that the transmitter received, and how long it paused. */
    uint64_t pauses_sent[GB_PRIORITIES], pauses_received[GB_PRIORITIES], paused_ns[GB_PRIORITIES];
};

/* A priority of a direction of a link that waits for others. */
struct gb_pause { uint64_t device_id, port, outwards, priority; };

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
    uint64_t host_event_drops;          /* packet-ins, digests and log lines that the controller was too slow for */
    uint64_t cloned, replicated, resubmitted, recirculated;
    uint64_t no_entry_drops;        /* of the program's drops: those by the action that a table runs on a miss */
    uint64_t copied;                /* copies that groups and clone sessions made of a packet besides itself */
    uint64_t packet_ins;            /* went to the controller's port, whether a controller listens or not */
    uint64_t packet_outs;           /* came from there */
    uint64_t no_session_clones;     /* not made, since the clone session has no ports */
};

/* Classes of packets, which are counted apart. A frame is of the class of the first pattern that fits, counted from 1; of
 * class 0 if none does. A pattern fits if its 16-bit words, big-endian and masked, have these values; bytes behind the
 * end of a frame count as 0. In a switch a packet keeps the class with which it came until it has passed egress. */
#define GB_CLASSES 16
#define GB_CLASS_WORDS 6
struct gb_class_pattern {
    uint32_t words;
    struct gb_class_word { uint32_t offset, mask, value; } word[GB_CLASS_WORDS];
};

/* Of one direction of a link, packets by class. entered, queue_drops: of what comes from outside alone; a queue in front
 * of an egress pipeline is the switch's. started: transmitted, lost ones included. refusals: by what is behind the port. */
struct gb_link_classes {
    uint64_t device_id, port, outwards;
    uint64_t entered[GB_CLASSES], queue_drops[GB_CLASSES], started[GB_CLASSES], losses[GB_CLASSES];
    uint64_t duplicates[GB_CLASSES], delivered[GB_CLASSES], refusals[GB_CLASSES];
};

/* Of a switch. By the class with which packets came: from_controller; copied: clones and copies; ended: in the switch, for
 * any reason, or for want of room in a port's queue. left: passed egress, by that class, and by that with which they
 * left; handed: of these, to the controller or to no port, by the latter. */
struct gb_device_classes {
    uint64_t from_controller[GB_CLASSES], copied[GB_CLASSES], ended[GB_CLASSES], handed[GB_CLASSES];
    uint64_t left[GB_CLASSES][GB_CLASSES];
};

struct gb_interface_statistics {
    uint64_t device_id, port, outwards;     /* the direction of a link that received frames go to */
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

/* Where and why gb_engine_run_until stopped. */
#define GB_MOST_RUN_NS 200000000

struct gb_stop {
    uint64_t time_ns;
    uint32_t due_count;             /* inboxes with frames to be notified of */
    uint32_t host_events;               /* 1: there are new ones */
    uint32_t idle;                  /* 1: nothing is queued, in flight or to be generated */
    uint32_t paused;                /* 1: it is not that far yet: call again, after having looked at signals */
};

/* Datagrams of one size, at a constant rate or with exponentially distributed pauses of the same mean (Poisson). The
 * frame is `header` (Ethernet, IPv4 and UDP without checksum), then a sequence number from 0 on and the time of
 * sending in nanoseconds, 8 bytes each and big-endian, then zeros. */
#define GB_TRAFFIC_HEADER_BYTES 42
#define GB_TRAFFIC_LEAST_BYTES (GB_TRAFFIC_HEADER_BYTES + 16)
struct gb_generator_options {
    uint64_t rate_bps;              /* of whole frames */
    uint64_t start_ns, stop_ns;     /* sends in start_ns <= time < stop_ns, */
    uint64_t packets;               /* and at most so many */
    uint64_t seed;
    uint32_t frame_bytes;
    uint32_t poisson;               /* 0: constant rate */
    uint8_t header[GB_TRAFFIC_HEADER_BYTES];
};

#define GB_LATENCY_COUNTS 64
struct gb_sink_statistics {
    uint64_t packets, bytes;
    uint64_t first_ns, last_ns;     /* of arrival */
    uint64_t latency_ns_total, latency_ns_min, latency_ns_max;
    uint64_t latency_counts[GB_LATENCY_COUNTS];     /* [0]: 0 ns; [n]: 2^(n-1) to 2^n - 1 ns; the last: or more */
};

/* A frame that left through an open port. */
struct gb_drained {
    uint64_t time_ns;
    uint64_t device_id;
    uint32_t port;
    uint32_t length;                /* bytes of data that follow in the buffer */
};

enum gb_host_event_kind { GB_HOST_EVENT_PACKET_IN = 1, GB_HOST_EVENT_DIGEST = 2, GB_HOST_EVENT_LOG = 3 };

struct gb_host_event {
    uint64_t device_id;
    uint32_t kind;
    uint32_t list_id;               /* digests: the learn list */
    uint64_t length;                /* bytes of data: a frame, 64-bit words, or text */
    uint8_t data[];
};

struct gb_replica { uint32_t egress_port, instance; };

/* ---- Life (engine.c) ---- */

/* Switches are in one of `lps` logical processes (LPs), 1 to GB_MAX_LPS, and 1 without a manual clock. NULL when that
 * is wrong, or memory or descriptors do not suffice. */
struct gb_engine *gb_engine_create(int manual_clock, uint32_t lps);
void gb_engine_free(struct gb_engine *);                    /* stops it first; frees no struct gb_switch */
int gb_engine_start(struct gb_engine *);                    /* the thread; not with a manual clock */
void gb_engine_stop(struct gb_engine *);
/* Let the thread, which does not run yet, record what instrumented programs do (trace.h). -EBUSY if it runs. */
int gb_engine_record(struct gb_engine *, struct gb_recorder *);
/* 1 once no packet is queued, in flight or in a socket; 0 if that took longer than the timeout. */
int gb_engine_quiesce(struct gb_engine *, uint64_t timeout_ns);
/* Manual clock: work through all events up to `nanoseconds` from now. -ELOOP after max_events events. */
int gb_engine_advance(struct gb_engine *, uint64_t nanoseconds, uint64_t max_events);
/* Manual clock: work through events up to until_ns (UINT64_MAX: until none is left), but stop at the first time at which
 * an inbox is due or a host event is raised, once all else at that time is done too. `due` takes the
 * numbers of those inboxes, in order; each is given once for each batch. -ELOOP after max_events of one time; -EDEADLK
 * when links with PFC wait for each other for good (gb_engine_deadlock). It returns after GB_MOST_RUN_NS of wall-clock time
 * at the latest, but for what happens at one time; what happens does not depend on that. */
int gb_engine_run_until(struct gb_engine *, uint64_t until_ns, uint64_t max_events, struct gb_stop *, uint32_t *due,
                        uint32_t capacity);
/* With more than one LP, and nothing for those outside to see: LPs are worked on side by side after so many
 * events, and as long as they have so many in a window on average and are faster than one after the other (by the clock on
 * the wall). fewest_events 0: however little there is to do, and however long it takes. */
void gb_engine_set_lookahead_windows(struct gb_engine *, uint64_t after_events, uint64_t fewest_events);
/* For how long queue pairs do not notify hosts of anything, as far as that can be seen without looking ahead; 0: of
 * something at any time. */
uint64_t gb_engine_silence(struct gb_engine *);
/* From now on LPs are worked on side by side even where a controller listens to switches (gb_engine_listen): the caller
 * knows that they send nothing. If one does after all meanwhile, gb_engine_run_until is -EXDEV. */
void gb_engine_expect_no_host_events(struct gb_engine *);
/* Links with PFC that wait for each other in a circle, each for the next; how many, 0 if none waits for good. */
uint32_t gb_engine_deadlock(struct gb_engine *, struct gb_pause *circle, uint32_t capacity);
uint64_t gb_engine_now(struct gb_engine *);
void gb_engine_statistics(struct gb_engine *, struct gb_engine_statistics *);

/* Keep the data plane from the switches' state meanwhile. Waits for one batch at most; hold it briefly. */
void gb_engine_lock(struct gb_engine *);
void gb_engine_unlock(struct gb_engine *);

/* ---- Switches and ports (build.c, control.c) ---- */

int gb_engine_add_switch(struct gb_engine *, uint64_t device_id, const struct gb_switch_options *);
int gb_engine_has_port(struct gb_engine *, uint64_t device_id, uint32_t port);     /* 0 or 1 */
/* The time at which the switch was added: its timestamps count from there. 0 if there is no such switch. */
uint64_t gb_engine_switch_start(struct gb_engine *, uint64_t device_id);
/* Let the switch run `state` (NULL: no program) from the next packet on, without multicast groups and clone sessions.
 * The caller keeps owning both old and new. */
int gb_engine_load(struct gb_engine *, uint64_t device_id, struct gb_switch *state);
/* With channels in its model, packets of priority p take channel p, and those of larger priorities the last. Each has
 * a queue and a transmitter of its own, with the whole rate. -EINVAL for too many; other links have one channel.
 * With turns, one channel after the other sends, from 1 on, in stretches of the engine's time; channel 0 always may. */
int gb_engine_add_link(struct gb_engine *, uint64_t device_a, uint32_t port_a, uint64_t device_b, uint32_t port_b,
                       const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a);
int gb_engine_add_open_port(struct gb_engine *, uint64_t device_id, uint32_t port, const struct gb_link_model *in,
                            const struct gb_link_model *out);
/* A port that ends in memory. Until gb_engine_open_inbox frames to it are lost unnoticed. */
int gb_engine_add_memory_port(struct gb_engine *, uint64_t device_id, uint32_t port, const struct gb_link_model *in,
                              const struct gb_link_model *out);
int gb_engine_add_interface(struct gb_engine *, uint64_t device_id, uint32_t port, const char *interface,
                            const struct gb_link_model *in, const struct gb_link_model *out);
/* Join two network interfaces by a link, without a pipeline at either end: what arrives at one leaves by the other.
 * They stand for ports of switches that other programs run (Open vSwitch) and that are switches without a program
 * here, or, with port_b GB_NO_PORT, for a host at end b; the link then is both directions of port a. */
int gb_engine_add_wire(struct gb_engine *, uint64_t device_a, uint32_t port_a, const char *interface_a,
                       uint64_t device_b, uint32_t port_b, const char *interface_b,
                       const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a);
/* A host's NIC for queue pairs: what they send leaves by a network interface, and what comes there is theirs, without
 * a pipeline. The port is one that ends in memory. */
int gb_engine_add_nic(struct gb_engine *, uint64_t device_id, uint32_t port, const char *interface,
                       const struct gb_link_model *in, const struct gb_link_model *out);
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
/* Count by these classes from now on, from zero; before, nothing is. -EINVAL for too many, or too many words. */
int gb_engine_count_classes(struct gb_engine *, const struct gb_class_pattern *, uint32_t count);
uint32_t gb_engine_link_classes(struct gb_engine *, struct gb_link_classes *, uint32_t capacity);
int gb_engine_device_classes(struct gb_engine *, uint64_t device_id, struct gb_device_classes *);

/* ---- Hosts in memory (memory.c) ---- */

/* Keep the frames that leave through a memory port from now on. Their owner is notified receive_coalescing_ns after the
 * first of a batch arrived, as by ethtool's rx-usecs; with GB_NEVER_NOTIFY never, and may look at any time. The inbox's
 * number, or a negative errno. Opened again, it changes its time of coalescing; what it holds stays. */
#define GB_NEVER_NOTIFY UINT64_MAX
int gb_engine_open_inbox(struct gb_engine *, uint64_t device_id, uint32_t port, uint64_t receive_coalescing_ns);
/* Stop listening; what it holds is thrown away. */
int gb_engine_close_inbox(struct gb_engine *, uint32_t inbox);
/* Offer frames to the link of the inbox's port, in order. Frame i begins at frames + i * stride and has lengths[i]
 * bytes; lengths NULL: all have `stride`. It is offered at times_ns[i], at once if that is over; times_ns NULL: now.
 * -EMSGSIZE if one is too long: none is sent then. */
int gb_engine_send(struct gb_engine *, uint32_t inbox, const uint8_t *frames, uint64_t stride,
                   const uint32_t *lengths, const uint64_t *times_ns, uint32_t count);
/* What the owner may know of: how many frames (at most 2^31 - 1), and the length of the longest. */
int gb_engine_inbox_waiting(struct gb_engine *, uint32_t inbox, uint32_t *longest);
/* The oldest of them, up to `capacity`; how many. Those longer than `stride` are cut off. */
int gb_engine_receive(struct gb_engine *, uint32_t inbox, uint8_t *frames, uint64_t stride, uint32_t *lengths,
                      uint64_t *times_ns, uint32_t capacity);

/* ---- Traffic (traffic.c), with a manual clock ---- */

int gb_engine_add_generator(struct gb_engine *, uint64_t device_id, uint32_t port,
                            const struct gb_generator_options *);
/* Take generators' datagrams to that UDP port (0: to any) that leave through a memory port, and count them. */
int gb_engine_add_sink(struct gb_engine *, uint64_t device_id, uint32_t port, uint32_t udp_port);
int gb_engine_sink_statistics(struct gb_engine *, uint64_t device_id, uint32_t port, struct gb_sink_statistics *);

/* ---- Captures (capture.c): files with times of the wall clock, or of the manual clock ---- */

/* Of the first two formats this writes the file's header, of pcapng the caller has written it, with if_tsresol 9. */
enum gb_capture_format { GB_CAPTURE_MICROSECONDS, GB_CAPTURE_NANOSECONDS, GB_CAPTURE_PCAPNG };

/* What is recorded: packets that leave the port or come to it (outwards), when the link begins to send them or when
 * they are at its far end (arriving). interface, flags: of pcapng's packet blocks (epb_flags). */
struct gb_capture_tap { uint32_t outwards, arriving, interface, flags; };

/* The engine closes the descriptor in the end, also when this fails. The number of the capture, or a negative errno. */
int gb_engine_capture_open(struct gb_engine *, int descriptor, uint32_t format);
/* Record what passes there, also what the link then loses; pcapng says so. -EEXIST if this capture does already. */
int gb_engine_capture_tap(struct gb_engine *, uint32_t capture, uint64_t device_id, uint32_t port,
                          const struct gb_capture_tap *);
/* Take so many packets at most, and none after so long a time from now; UINT64_MAX: no limit. */
int gb_engine_capture_limit(struct gb_engine *, uint32_t capture, uint64_t packets, uint64_t for_ns);
/* How many packets it has taken; 1 if it takes no more, else 0. */
int gb_engine_capture_state(struct gb_engine *, uint32_t capture, uint64_t *packets);
/* Write what is still in memory, and end. The error that ended it earlier, if one did. */
int gb_engine_capture_close(struct gb_engine *, uint32_t capture, uint64_t *packets);

/* ---- From the data plane to the controller (host_events.c) ---- */

/* Which kinds (bits 1 << enum gb_host_event_kind) of host event are listened to; the others are dropped uncounted. */
int gb_engine_listen(struct gb_engine *, uint64_t device_id, uint32_t kinds);
/* The oldest host event, for gb_host_event_free; NULL after the timeout, or once gb_engine_host_event_close was called. */
struct gb_host_event *gb_engine_host_event_wait(struct gb_engine *, uint64_t timeout_ns);
void gb_host_event_free(struct gb_host_event *);
void gb_engine_host_event_close(struct gb_engine *);

#endif
