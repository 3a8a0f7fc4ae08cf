/* Priority-based flow control (IEEE 802.1Qbb; 802.1Q-2018, clause 36) of links that lead to a switch (pfc.c). */
#ifndef GRADBED_PFC_H
#define GRADBED_PFC_H

#include "engine/internal.h"

#pragma GCC visibility push(hidden)

enum { PAUSE_FRAME_BYTES = 60 };    /* 64 with the frame check sequence, which no length of this model counts */

/* Of one direction of a link: what its far end holds of what came by it, and what its transmitter received. */
struct pfc {
    uint64_t since_ns[GB_PRIORITIES];               /* of the end that sends: paused since then */
    _Alignas(APART) uint64_t buffered_bytes[GB_PRIORITIES];    /* of the far end, by the priority on the link */
    uint8_t asked;                                  /* of the far end: the priorities that it wants paused */
};

/* What counts for a packet that waits, once it does not: packets may be gone by then. */
struct buffered { struct link_direction *by; uint32_t bytes; uint8_t priority; };

/* The direction has PFC, or had it earlier. False when out of memory. */
bool pfc_prepare(struct link_direction *);
void pfc_free(struct link_direction *);
/* The priority of a frame that a host's NIC sends: the class selector of IPv4's DSCP (RFC 2474), the priority of a VLAN
 * tag, else 0. */
uint32_t pfc_priority(const struct packet *);
/* A packet that came by a link with PFC begins to wait in a switch. */
void pfc_hold(struct logical_process *, struct packet *);
static inline struct buffered pfc_let_go(struct packet *packet) {
    struct buffered buffered = {packet->came_by, packet->buffered_bytes, packet->came_priority};
    packet->buffered_bytes = 0;
    return buffered;
}
/* It waits no more. */
void pfc_release(struct logical_process *, struct buffered);
/* A pause frame has come over `back` to the transmitter of the other direction, which has it from then on. */
void pfc_take(struct logical_process *, struct link_direction *back, struct packet *frame);
/* What was paused up to now, for a row of statistics. */
void pfc_add_running(const struct link_direction *, uint64_t now_ns, struct gb_link_statistics *row);
/* Look for deadlocks, as is to be done at watch_ns; whether there is one. */
bool pfc_watch(struct gb_engine *);
/* Links that wait for each other in a circle, each for the next; how many, 0: no link waits for good. Of those `circle` takes
 * up to capacity. */
uint32_t pfc_deadlock(struct gb_engine *, struct gb_pause *circle, uint32_t capacity);

#pragma GCC visibility pop
#endif
