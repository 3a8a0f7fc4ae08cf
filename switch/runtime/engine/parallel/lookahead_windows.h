/* LPs side by side (lookahead_windows.c). Each has a side, which its thread alone writes; others read what has two copies
 * while the thread already writes the other one. */
#ifndef GRADBED_WINDOWS_H
#define GRADBED_WINDOWS_H

#include <stdatomic.h>

#include "engine/internal.h"

#pragma GCC visibility push(hidden)

/* caused: in the window until after it. is_last: after all others of its time, as NICs' collectives act. */
struct event { uint64_t due_ns, sequence; uint32_t caused; bool is_last; };
struct events { struct event *events; uint32_t count, capacity; };

/* A packet for another LP. number: which of what was caused in the window. */
struct crossing { struct packet *packet; const uint8_t *data; struct link_direction *direction; uint64_t due_ns, number; };
struct crossings { struct crossing *crossings; uint32_t count, capacity; };

struct numbers { uint64_t *of; uint32_t capacity; };

struct lookahead_end { uint64_t sequence, begin_ns; bool kept_limit, looked, slow, paused; };

struct side {
    _Alignas(APART) struct logical_process *lp;
    uint32_t parity;                /* which copies it writes */
    struct packet_list ready;
    uint64_t next_sequence;
    struct causes causes;
    struct numbers numbers[GB_MAX_LPS];
    struct lookahead_end end;

    struct events events[2];
    struct crossings boxes[2][GB_MAX_LPS];     /* for each of the others */
    struct packet_list empties[2][GB_MAX_LPS]; /* for what each of them handed over */
    uint64_t next_ns[2];            /* its next event */
    uint64_t crossing_ns[2];        /* the first arrival of what crosses */
    uint32_t caused[2];
    bool kept_limit[2], slow[2], paused[2];
    bool notifies[2];               /* an agent is to be notified, unexpectedly */
};

struct lookahead {
    uint32_t count;
    uint64_t until_ns, lookahead_ns, max_events, fewest_events;
    double alone_ns;                /* wall-clock time of an event on one thread; 0: unknown */
    uint64_t base, begin_ns;        /* of the first window */
    pthread_mutex_t mutex;
    pthread_cond_t begins;
    uint32_t round;                 /* of lookahead_run */
    bool stopping;
    uint32_t started;
    pthread_t threads[GB_MAX_LPS];
    _Alignas(APART) atomic_uint arrived;
    _Alignas(APART) atomic_uint turn;
    struct side sides[GB_MAX_LPS];
};

/* ---- The order of one thread (event_order.c) ---- */

/* Twice as much room; false when out of memory. */
bool lookahead_grow(void **array, uint32_t *capacity, size_t element_bytes);
/* After a window: which number one thread gives to what each LP caused. Every thread does this for itself, so that they
 * wait once for each window; `side` keeps the numbers. */
void lookahead_merge(struct lookahead *, struct side *, uint64_t base);
/* What the LP caused and still waits gets the numbers of one thread. */
void lookahead_renumber(struct side *, uint64_t base);

#pragma GCC visibility pop
#endif
