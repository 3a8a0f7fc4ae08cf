/* What the engine's files share. The caller of every function here holds the engine's lock. */
#ifndef GRADBED_ENGINE_INTERNAL_H
#define GRADBED_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "cache_lines.h"
#include "engine/engine.h"
#include "engine/lock.h"
#include "engine/packet.h"
#include "engine/timer.h"

#pragma GCC visibility push(hidden)

struct nic;
struct consumer;
struct logical_process;
struct receive_batch;               /* ports/socket.h */

/* What different threads write lies so many bytes apart: two lines of a cache, as processors fetch the next one, too. */
#define APART 128

/* ---- What lies behind a port that leads out: a network interface (socket.c), memory (memory.c) ---- */

struct port_io;

struct port_io_kind {
    /* Take a packet that has passed the link, and count it (direction_count), at once or when flushed. */
    void (*send)(struct logical_process *, struct port_io *, struct packet *);
    /* Hand on what `send` held back (port_io_hold). NULL: it holds nothing back. */
    void (*flush)(struct gb_engine *, struct port_io *);
    /* Offer a batch of what has come from outside to the link `in`. NULL: calls of the control plane bring it. */
    void (*receive)(struct gb_engine *, struct port_io *, uint32_t epoll_events);
    bool (*carrier)(const struct port_io *);
    void (*close)(struct gb_engine *, struct port_io *);    /* and free it */
};

struct port_io {
    const struct port_io_kind *kind;
    struct link_direction *in;           /* the link that frames from outside take */
    struct link_direction *out;          /* the link whose frames end here */
    bool carrier;
    bool blocked;                   /* takes no frames for now: the transmitter of `out` waits */
    bool unflushed;                      /* on the engine's list of those to be flushed */
};

/* Let the engine own it from now on; false when out of memory. */
bool port_io_adopt(struct gb_engine *, struct port_io *);
void port_io_hold(struct gb_engine *, struct port_io *);

/* ---- Links (link.c) ---- */

enum far_end { TO_PIPELINE, TO_OUTSIDE, TO_CONTROLLER, TO_NOWHERE };

/* One direction of a link: from a switch's traffic manager, or from a port that faces a host.
 *
 * To arrive, a packet takes the first three lines of the cache, and the fourth if more than two tables keep what they found.
 * To be sent at an idle transmitter it takes the second and that of the transmitter, and the first unless the other end is
 * in another LP. So what is on either side of the second line is written by one end alone. */
struct link_direction {
    _Alignas(64) struct timer arrival;
    struct packet_list flight;      /* by time of arrival */
    /* What both ends read. */
    _Alignas(64) struct logical_process *peer_lp;     /* of the end that receives: what is in flight */
    /* Channels of one cable: packets of priority p take channel p, those of larger ones than there are the last. Each
     * has a queue and a transmitter of its own; everything else is that of the whole, which is channel 0. */
    struct link_direction *parent;        /* itself, if there is one channel */
    struct device *to;              /* TO_PIPELINE */
    struct port_io *io;             /* TO_OUTSIDE */
    uint32_t to_port;
    uint8_t far_end;                /* enum far_end */
    uint8_t channel;                /* its number */
    bool tapped;                    /* there are taps */
    bool has_pfc;                   /* at its far end */
    const struct gb_link_model *model;
    struct gb_link_classes *classes;    /* or NULL */
    struct link_direction *lately_to;    /* where the switch sent what came by this link last; rarely another */
    /* Of the end that receives. */
    _Alignas(64) uint64_t packets, bytes;       /* gb_link_statistics */
    struct gb_recent recents[GB_RECENTS];
    struct gb_link_statistics statistics;       /* but for what is taken down elsewhere: direction_report */
    /* The transmitter, and what it sends. */
    _Alignas(64) struct device *egress; /* whose egress pipeline packets pass when they leave the queue; or NULL */
    uint32_t egress_port;
    uint8_t more_channels;          /* besides channel 0 */
    bool cut;                       /* the link is down: what is sent is lost */
    uint8_t paused;                 /* by PFC: the priorities that it must not send, a bit each */
    uint64_t busy_until_ns;         /* the packet being sent has left by then */
    uint64_t busy_remainder;        /* and this many nanoseconds, divided by rate_bps, later */
    uint64_t backlog_bytes;         /* that began to be sent since backlog_start_ns */
    uint64_t last_arrival_ns;       /* of all that were sent so far */
    uint64_t entered_bytes;         /* gb_link_statistics */
    struct packet_queue queue;
    uint64_t backlog_start_ns;      /* clock time at which the present stretch of backlog began; 0: there is none */
    struct logical_process *lp;         /* of the end that sends: its queue and its transmitter */
    struct pfc *pfc;                /* or NULL */
    struct tap *arrivals, *departures;
    struct timer departure;
    struct nic *nic;                /* of a host, whose turn it is when nothing waits here, or every other time; or NULL */
    bool nic_next;
    bool reported;
    struct link_direction *back;         /* the other direction of the cable; NULL where no switch has both */
    uint32_t number;                /* among the engine's directions */
    uint64_t random_state, jitter_state, error_state;
    double bits_to_error;           /* that arrive right before the next that does not; negative: not drawn yet */
    struct link_direction *channels[GB_PRIORITIES - 1];
};

struct link_direction *direction_create(struct gb_engine *, const struct gb_link_model *, struct device *,
                                   uint32_t port, bool outwards);
/* Let it end at that port, of another switch perhaps. */
void direction_lead_to(struct link_direction *, struct device *, uint32_t port);
/* Let it have so many channels; false when out of memory. */
bool direction_split(struct gb_engine *, struct link_direction *, uint32_t channels);
void direction_offer(struct logical_process *, struct link_direction *, struct packet *);
/* Look at what a packet takes that is offered soon, in that LP (cache_lines.h). */
void direction_prefetch(const struct link_direction *, const struct logical_process *);
/* The transmitter may be free again. */
void direction_resume(struct logical_process *, struct link_direction *);
/* Whether PFC keeps it from sending packets of that priority now. direction_resume is called when that is over. */
static inline bool direction_paused(const struct link_direction *direction, uint32_t priority) {
    return direction->paused >> priority & 1;
}
/* Send the frame before all that waits, once what is being sent has left. It is not lost. */
void direction_send_ahead(struct logical_process *, struct link_direction *, struct packet *);
/* Let it have that model, but for the seed; false when out of memory (models.c). */
bool direction_set_model(struct gb_engine *, struct link_direction *, const struct gb_link_model *);
void models_free(struct gb_engine *);
/* Its statistics, with those of its channels. */
void direction_report(const struct link_direction *, uint64_t now_ns, struct gb_link_statistics *);
/* The packet reached the far end; `accepted` is false if that refused it. */
void direction_count(struct link_direction *, const struct packet *, bool accepted);

/* ---- Replication (replication.c) ---- */

struct replica_set { uint32_t count, truncate_bytes, class_of_service; struct gb_replica replicas[]; };
struct replica_map { struct replica_set **pages[256]; };     /* by 16-bit number, high byte first */

const struct replica_set *replica_map_find(const struct replica_map *, uint64_t number);
int replica_map_set(struct replica_map *, uint32_t number, const struct gb_replica *, uint32_t count,
                    uint32_t truncate_bytes, uint32_t class_of_service);
int replica_map_delete(struct replica_map *, uint32_t number);
void replica_map_clear(struct replica_map *);

/* ---- Switches (pipeline.c) ---- */

struct port {
    struct link_direction *out;
    struct link_direction *in;           /* ports that face a host or the controller; NULL on links between switches */
};

struct device {
    _Alignas(64) struct logical_process *lp;
    struct gb_switch *state;        /* NULL: no program */
    struct gb_device_classes *classes;  /* or NULL */
    uint64_t start_ns;
    uint32_t cpu_port, drop_port, priorities, listens;
    struct gb_device_statistics statistics;     /* what every packet counts first */
    struct gb_engine *engine;
    uint64_t device_id, seed;
    struct link_direction *nowhere;      /* of ports that do not exist; its egress_port is the latest of them */
    struct replica_map groups, sessions;
    uint64_t ports_down[GB_MAX_PORTS / 64];
    struct port ports[GB_MAX_PORTS];
};

void pipeline_begin(struct logical_process *, struct packet *);
/* Look at what the packet will need, the next that comes by that link, by the steps of timers. */
void pipeline_prefetch(const struct link_direction *, const struct packet *, unsigned step);
/* Egress and deparser. False if the packet went elsewhere than to the port; the engine has it or freed it. */
bool pipeline_egress(struct logical_process *, struct link_direction *, struct packet *);
void pipeline_enqueue(struct logical_process *, struct packet *, uint64_t port);
/* Drop everything of the device that holds a PHV. */
void pipeline_abandon(struct device *);

/* ---- Ports that are up or down (port_state.c) ---- */

/* Look whether a port is up, and let the program know when that has changed. */
void port_look(struct device *, uint32_t port);
/* Tell the engine, by netlink_fd, when interfaces go up and down. The first call opens it; 0 or a negative errno. */
int carriers_watch(struct gb_engine *);
void carrier_take(struct gb_engine *, struct port_io *, bool carrier);
/* Take what the kernel has reported since. */
void carriers_read(struct gb_engine *);

/* ---- Ports that end in memory (memory.c) ---- */

enum listener { NO_LISTENER, DRAIN, INBOX };

/* A host's end of a link. Frames for an inbox wait as on a NIC's ring, until the NIC notifies the host:
 * receive_coalescing_ns after the first (ethtool's rx-usecs), or not at all (GB_NEVER_NOTIFY). */
struct memory_port {
    struct port_io io;              /* first */
    enum listener listener;
    uint32_t port, number;          /* number: among the engine's ports that lead out */
    struct logical_process *lp;
    uint64_t device_id;
    struct sink *sink;              /* or NULL */
    struct nic *nic;                /* with queue pairs (transport/nic.h), or NULL */
    uint64_t receive_coalescing_ns;
    struct packet_list ring;        /* arrived since the last notification */
    struct packet_list notified;    /* of these the owner was notified */
    struct timer interrupt;
    struct packet_list outbox;      /* to be sent at their times */
    struct timer sending;
    struct memory_port *next_due;   /* on its LP's list */
    uint64_t due_order;             /* since when, among all */
    bool due;
    int notify_fd;                  /* an eventfd for its owner, where no data plane stops; or -1 */
};

int memory_port_create(struct device *, uint32_t port, enum listener, struct memory_port **);
/* Stop the data plane for its owner. */
void memory_port_notify(struct logical_process *, struct memory_port *);
/* Whether its owner may have to be notified of frames, or looks at them at any time. */
bool memory_port_notifies(struct port_io *);
/* The port by its number, or by its place; NULL if it does not end in memory. */
struct memory_port *memory_port_at(struct gb_engine *, uint64_t device_id, uint32_t port);

/* ---- Generators and sinks (traffic.c) ---- */

struct sink {
    uint32_t udp_port;              /* 0: any */
    struct gb_sink_statistics statistics;
};

/* Count the packet if it is one that a generator sent to the sink's UDP port. */
bool sink_take(struct sink *, const struct packet *, uint64_t now_ns);
void generators_free(struct gb_engine *);

/* ---- Captures (capture.c) ---- */

struct capture {
    int descriptor, error;
    uint32_t format;                /* enum gb_capture_format */
    uint64_t packets, most_packets;
    uint64_t end_ns;                /* of the engine's clock: nothing is taken from then on */
    int64_t wall_ns;                /* what to add to the engine's clock */
    uint32_t used;                  /* bytes in the buffer */
    uint8_t buffer[1 << 17];
};

/* Where a capture hangs on a direction of a link. */
struct tap {
    struct tap *next;               /* of another capture */
    struct capture *capture;
    uint32_t interface, flags;      /* as in gb_capture_tap */
};

/* Record the frame as of now in the captures of all these taps. lost: the link does not carry it. */
void captures_take(struct logical_process *, const struct tap *, const struct packet *, bool lost);
void taps_free(struct tap *);
/* Hand what the buffers hold to the files, for those who watch them. */
void captures_flush(struct gb_engine *);
void captures_free(struct gb_engine *);

/* ---- Host events (host_events.c) ---- */

struct host_event_node { struct host_event_node *next; struct gb_host_event host_event; };

struct host_event_queue {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct host_event_node *first, *last;
    uint32_t count;
    bool closed;
};

void host_event_queue_open(struct host_event_queue *);
void host_event_queue_free(struct host_event_queue *);
void host_event_send(struct device *, enum gb_host_event_kind, uint32_t list_id, const void *data, uint64_t length);
void host_event_digest(struct gb_switch *, uint32_t list_id, const uint64_t *words, uint32_t word_count);
void host_event_log(struct gb_switch *, const char *line);

/* ---- LPs (parallel/logical_process.c): switches with the hosts' ports at them, and what happens there ---- */

struct consumer;

struct logical_process {
    _Alignas(APART) struct gb_engine *engine;
    uint64_t now_ns;                /* the time of the event being worked on */
    uint64_t clock_ns;              /* the time at which that is done: the same, or later */
    struct packet_list *ready;      /* to be worked on at now_ns */
    struct timer_queue timers;
    struct packet_pool pool;
    struct arena arena;             /* of its directions and switches */
    struct side *side;              /* while it is worked on beside others; or NULL */
    struct gb_engine_statistics statistics;     /* of its timers */
    struct memory_port *due_first, *due_last;   /* whose owners are to be notified of frames */
    struct consumer *acting_first, *acting_last;    /* whose collectives may send */
    uint64_t arrived_packets;       /* in inboxes and drained */
};

bool lps_create(struct gb_engine *, uint32_t count);
void lps_free(struct gb_engine *);
/* Room for the timers of something new, which may hang in any LP. */
bool lps_reserve(struct gb_engine *, uint32_t timers);
/* Of all together. */
void lps_statistics(struct gb_engine *, struct gb_engine_statistics *);
uint64_t lps_live(const struct gb_engine *);
uint64_t lps_arrived(const struct gb_engine *);
void lps_set_now(struct gb_engine *, uint64_t now_ns);
/* Take the numbers of inboxes whose owners are to be notified, in order, up to those due from `order` on; how many. */
uint32_t lps_take_due(struct gb_engine *, uint64_t order, uint32_t *numbers, uint32_t capacity);
/* Since when the first of them is due; UINT64_MAX: none is. */
uint64_t lps_due_order(const struct gb_engine *);
void lp_count_lateness(struct logical_process *, uint64_t late_ns);
void lp_work_on(struct logical_process *, struct packet *);
/* Whether no timer is due now in any LP, or in this one while it is worked on beside others. */
bool lp_alone_now(struct logical_process *);

/* ---- LPs side by side (parallel/lookahead_windows.c) ---- */

struct lookahead;

/* Manual clock: work through events up to until_ns side by side, while there are many and that is faster. 0 if nothing was
 * done, 1 if all that was due was, or some of it, 2 if it may go on at once; -ELOOP after max_events of one time, -EXDEV if a
 * switch sent its controller a message. alone_ns: what an event takes on one thread, 0 if that is unknown. */
int lookahead_run(struct gb_engine *, uint64_t until_ns, uint64_t max_events, double alone_ns);
void lookahead_free(struct gb_engine *);
/* From within: let the packet arrive in another LP. */
void lookahead_cross(struct logical_process *, struct link_direction *, struct packet *, uint64_t arrival_ns);

/* ---- The engine (engine.c) ---- */

struct gb_engine {
    struct engine_lock lock;
    bool manual_clock, running, stopping, sleeping;
    pthread_t thread;
    struct gb_recorder *recorder;   /* of the thread; NULL: none */
    struct logical_process *lps;
    uint32_t lp_count;
    struct lookahead *lookahead;        /* NULL until there are some */
    uint64_t events_before_lookahead, fewest_events_in_lookahead;
    uint32_t lookahead_put_off;       /* the former are doubled so often */
    int epoll_fd, wake_fd, timer_fd;
    int netlink_fd;                 /* reports on interfaces; -1: there are none */
    uint64_t armed_ns;              /* what timer_fd is set to; 0: nothing */
    uint64_t now_ns, clock_ns;      /* as in the LP that is worked on */
    uint64_t manual_ns;
    struct packet_list ready;       /* to be worked on at now_ns */
    uint64_t next_sequence;         /* of timers and of packets on timed lists */
    _Atomic uint64_t pool_bytes;
    struct host_event_queue host_events;

    struct device **devices;        /* by rising device id */
    uint32_t device_count;
    struct link_direction **directions;
    uint32_t direction_count;
    struct shared_model *models;    /* of directions */

    struct port_io **ios;           /* of all ports that lead out */
    struct port_io **unflushed;          /* those to be flushed; as long as ios */
    uint32_t io_count, unflushed_count, batches_since_flush;

    struct packet_list drained;     /* left through open ports */
    bool has_pfc;                   /* some link has, or had */
    uint64_t watch_ns;              /* when to look for deadlocks next */
    bool host_event_waits;              /* since the data plane last stopped for one */
    bool expects_no_host_events;        /* the caller guarantees it: LPs may be worked on side by side */
    _Atomic bool unexpected_host_event; /* there was one meanwhile */

    struct generator **generators;
    uint32_t generator_count;

    struct consumer **consumers;    /* of queue pairs; NULL for those that were closed */
    uint32_t consumer_count;

    struct capture **captures;      /* NULL for those that were closed */
    uint32_t capture_count;
    struct class_patterns *patterns;    /* or NULL */

    struct receive_batch *receive_small, *receive_large;
    uint64_t idle_packets;          /* in those */
};

/* The LP whose timer is the next one; NULL if none is armed. */
static inline struct logical_process *lps_next(struct gb_engine *engine) {
    const struct timer_place *first = NULL;
    struct logical_process *next = NULL;
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        struct logical_process *lp = &engine->lps[i];
        const struct timer_place *own = timer_next(&lp->timers);
        if (own->due_ns != UINT64_MAX && (!first || timer_earlier(own, first))) {
            first = own;
            next = lp;
        }
    }
    return next;
}

/* Whether an owner is to be notified, or a collective may send. */
static inline bool lps_wait(const struct gb_engine *engine) {
    bool waits = false;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        waits |= engine->lps[i].due_first || engine->lps[i].acting_first;
    return waits;
}

uint64_t real_clock(void);          /* CLOCK_MONOTONIC */
uint64_t engine_clock(struct gb_engine *);
/* Let time pass before something new comes in from outside. */
void engine_catch_up(struct gb_engine *);
/* Let a sleeping data plane look at what a control call brought. */
void engine_wake(struct gb_engine *);
/* Hand on what ports hold back. */
void engine_flush(struct gb_engine *);
struct device *engine_device(struct gb_engine *, uint64_t device_id);

#define GB_QDEPTH_MASK 0x7ffffu     /* the 19 bits of v1model's queue depths */

/* In the 48 bits of v1model's timestamps. */
static inline uint64_t device_time_us(const struct device *device, uint64_t now_ns) {
    return (now_ns - device->start_ns) / 1000 & (((uint64_t)1 << 48) - 1);
}

#pragma GCC visibility pop
#endif
