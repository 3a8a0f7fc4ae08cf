/* Packets, the lists and queues that they wait on, and where their memory comes from (packet.c). */
#ifndef GRADBED_PACKET_H
#define GRADBED_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "engine/engine.h"

#pragma GCC visibility push(hidden)

struct device;
struct link_direction;

enum stage {
    STAGE_PARSE,                    /* bytes alone: at the beginning of a pipeline, or between switches */
    STAGE_PARSE_AGAIN,              /* resubmitted or recirculated: brings metadata */
    STAGE_ENQUEUE,                  /* a clone made in egress, on its way to the traffic manager */
    STAGE_PAUSE,                    /* no packet but a pause frame of the link itself (pfc.c) */
};

struct packet {
    struct gb_packet view;          /* first: programs see it as all there is */
    struct packet *next;
    struct device *device;          /* where it is or goes */
    struct link_direction *direction;    /* in the queue of, in flight on, or waiting for the socket of */
    uint64_t due_ns, sequence;      /* on a timed list (timer.c) */
    uint32_t port;                  /* STAGE_PARSE: arrived at; STAGE_ENQUEUE: goes to */
    uint32_t truncate_bytes;        /* UINT32_MAX: whole */
    uint8_t stage, priority;        /* priority: of the queue that it left */
    uint8_t size;                   /* of its buffer: which of PACKET_SIZES */
    uint8_t class_number;           /* classes.h */
    bool duplicate;
    bool pauses;                    /* STAGE_PAUSE: it begins a pause of `priority`, or ends it */
    uint8_t came_priority;          /* the priority that it had on that link */
    uint32_t buffered_bytes;            /* count there while it waits; 0: it does not, or nothing counts */
    struct link_direction *came_by;      /* the link with PFC by which it came to the switch, or NULL */
    uint32_t touched_bytes;         /* of a hollow packet's memory, at most */
    uint8_t *zeros_from;            /* of a hollow packet: its buffer is 0 from here on; NULL: it is not hollow */
};

struct packet_list {
    struct packet *first, *last;
    uint32_t count;
};

enum { PACKET_SIZES = 10, MOST_HEADROOM_BYTES = 16384 };

struct slab;
struct idle_context;

struct packet_pool {
    struct packet *free_packets[PACKET_SIZES];
    struct arena arena;             /* of all others */
    struct slab *slabs;             /* of hollow packets, which may be in other pools by now */
    struct idle_context *free_passes;
    uint32_t phv_words;             /* of new passes: what the largest program needs */
    uint32_t headroom_bytes;        /* of frames from outside, likewise */
    uint64_t live;                  /* taken here less given back here: of all pools together, how many are in use */
    _Atomic uint64_t *bytes;        /* of all pools of the engine */
};

/* Empty, with room for `room` bytes from view.data on and at least `headroom` before. NULL when out of memory, when
 * the pool has reached its limit, and when no buffer is that large. */
struct packet *packet_take(struct packet_pool *, uint32_t headroom, uint32_t room);
/* A hollow packet, whose first `real` bytes the caller writes; those behind, up to `length`, are 0. */
struct packet *packet_take_hollow(struct packet_pool *, uint32_t headroom, uint32_t real, uint32_t length);
struct packet *packet_from_bytes(struct packet_pool *, const uint8_t *data, uint32_t length, uint32_t headroom);
/* Copy of a frame's bytes, without PHV. */
struct packet *packet_copy_frame(struct packet_pool *, const struct packet *, uint32_t headroom);
/* Copy in the middle of a pipeline: PHV, standard metadata, payload. */
struct packet *packet_copy_parsed(struct packet_pool *, const struct packet *, const struct gb_program *);
/* The packet, or another with its contents that takes its place. NULL when out of memory: the packet stays. */
struct packet *packet_with_headroom(struct packet_pool *, struct packet *, uint32_t headroom);
/* Gives its pass back as well. */
void packet_free(struct packet_pool *, struct packet *);
void packet_pool_free(struct packet_pool *);
/* Once that was done to all pools. */
void packet_pool_free_hollow(struct packet_pool *);
/* An empty packet of that size (an index) for another pool, or NULL; and what another pool gave. */
struct packet *packet_pool_give(struct packet_pool *, uint8_t size);
void packet_pool_take(struct packet_pool *, struct packet *);

/* A deparser has written headers, perhaps where a hollow packet had zeros. */
static inline void packet_deparsed(struct packet *packet) {
    uint8_t *end = packet->view.data + packet->view.payload_offset;
    if (packet->zeros_from && packet->zeros_from < end)
        packet->zeros_from = end;
}

static inline void list_append(struct packet_list *list, struct packet *packet) {
    packet->next = NULL;
    if (list->last)
        list->last->next = packet;
    else
        list->first = packet;
    list->last = packet;
    list->count++;
}

static inline struct packet *list_pop(struct packet_list *list) {
    struct packet *packet = list->first;
    if (packet) {
        list->first = packet->next;
        if (!list->first)
            list->last = NULL;
        list->count--;
    }
    return packet;
}

/* Move all of `more` to the end of `list`. */
static inline void list_join(struct packet_list *list, struct packet_list *more) {
    if (!more->first)
        return;
    if (list->last)
        list->last->next = more->first;
    else
        list->first = more->first;
    list->last = more->last;
    list->count += more->count;
    *more = (struct packet_list){0};
}

/* What waits for a transmitter: the largest priority first, and in each the oldest. */
struct packet_queue {
    uint32_t count, occupied;       /* occupied: a bit for each list that is not empty */
    struct packet_list lists[GB_PRIORITIES];
};

static inline uint32_t queue_length(const struct packet_queue *queue, uint32_t priority) {
    return queue->count ? queue->lists[priority].count : 0;     /* what is not there is not looked at */
}

static inline void queue_append(struct packet_queue *queue, uint32_t priority, struct packet *packet) {
    list_append(&queue->lists[priority], packet);
    queue->occupied |= 1u << priority;
    queue->count++;
}

/* Without those priorities, of which each is a bit. */
static inline struct packet *queue_pop(struct packet_queue *queue, uint8_t paused) {
    uint32_t ready = queue->occupied & ~(uint32_t)paused;
    if (!ready)
        return NULL;
    uint32_t priority = 31 - (uint32_t)__builtin_clz(ready);
    struct packet *packet = list_pop(&queue->lists[priority]);
    if (!queue->lists[priority].first)
        queue->occupied &= ~(1u << priority);
    queue->count--;
    return packet;
}

struct gb_packet_context *context_take(struct packet_pool *, uint32_t phv_words);    /* NULL when out of memory; contents undefined */
void context_give(struct packet_pool *, struct gb_packet_context *);                 /* NULL is none */

/* Into a list that is ordered by due_ns, behind those of one time. */
void list_insert(struct packet_list *, struct packet *);
void list_free(struct packet_pool *, struct packet_list *);

#pragma GCC visibility pop
#endif
