/* A host's NIC: what a port in memory needs to know of it. */
#ifndef GRADBED_NIC_H
#define GRADBED_NIC_H

#include "engine/internal.h"

#pragma GCC visibility push(hidden)

struct queue_pair;
struct stream;

struct pair_list { struct queue_pair *first, *last; };

/* It makes packets when the transmitter of its link is free: of the largest priority, control packets first, and of its
 * pairs one after the other. So nothing of it waits in the link's queue. */
struct nic {
    struct memory_port *port;
    struct link_direction *link;
    uint32_t control_ready, data_ready;     /* a bit for each priority whose list is not empty */
    struct pair_list control[GB_PRIORITIES], data[GB_PRIORITIES];
    struct queue_pair **table;      /* by number: open addressing */
    uint32_t table_size, pairs, consumers, timers;
    uint64_t unknown;
    struct stream *streams;
};

/* Whether it has some of a priority that PFC lets it send. */
static inline bool nic_ready(const struct nic *nic) {
    return nic && ((nic->control_ready | nic->data_ready) & ~(uint32_t)nic->link->paused);
}

/* The next packet, which its link begins to send at once; NULL: there is none. */
struct packet *nic_next(struct logical_process *, struct nic *);
/* Whether the packet is one for NICs; it is the NIC's then. */
bool nic_take(struct logical_process *, struct nic *, struct packet *);
void nic_free(struct nic *);
void consumers_free(struct gb_engine *);
/* For how long no agent can be notified of what its queue pairs do; 0: it may be at any time. */
uint64_t consumers_silence_ns(const struct gb_engine *);

#pragma GCC visibility pop
#endif
