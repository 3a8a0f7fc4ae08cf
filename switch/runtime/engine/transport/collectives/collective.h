/* Collectives: what pairs, consumers and the event loop need to know of them. */
#ifndef GRADBED_COLLECTIVE_H
#define GRADBED_COLLECTIVE_H

#include "engine/internal.h"
#include "engine/transport/collectives/collectives.h"

#pragma GCC visibility push(hidden)

struct collective;
struct consumer;

/* A send that may begin. */
struct ready_send { struct collective *collective; uint32_t step; };

struct arrived {
    uint64_t tag, size_bytes;
    void *data;                     /* or NULL */
    uint32_t pair;
};

/* A message that came before its collective, or before its step. */
struct early_message {
    struct early_message *next;
    struct arrived arrived;
    uint32_t step;
};

/* Of one consumer. */
struct collectives {
    struct collective *first;       /* that have not ended */
    struct early_message *early, **early_end;   /* of those that were not begun; early_end: NULL while there are none */
    struct ready_send *ready;
    uint32_t ready_count, ready_capacity;
    bool held, acting;              /* acting: on its LP's list */
    uint64_t acting_order;          /* since when, among all, with ports whose owners are to be notified */
    struct consumer *next_acting;
    struct gb_collective_counts counts;
};

/* A message came by a pair that is for collectives; its data are theirs from now on. */
void collective_received(struct logical_process *, struct consumer *, const struct arrived *);
/* A message that it sent was acknowledged. */
void collective_sent(struct logical_process *, struct collective *, uint32_t step);
/* Let NICs send what became ready before `order`. Whether any did. */
bool collectives_act(struct gb_engine *, uint64_t order);
/* When the first of them became ready; UINT64_MAX: nothing is. */
uint64_t collectives_order(const struct gb_engine *);
/* The same of the LP's own alone, some of which may send. */
uint64_t collectives_own_order(const struct logical_process *);
/* Let the first of them send. */
void collectives_act_next(struct logical_process *);
/* How many bytes have to come at least, as they are on the wire, before an agent can be notified of a result; UINT64_MAX: it
 * awaits none. */
uint64_t collectives_awaited_bytes(const struct consumer *);
/* Of a consumer whose pairs are closed. */
void collectives_close(struct logical_process *, struct consumer *);

#pragma GCC visibility pop
#endif
