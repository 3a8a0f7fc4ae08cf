/* Collectives that a host's NIC carries out by itself: it sends each message of a schedule as soon as what that waits
 * for has come, or was acknowledged, as NICs do that have triggered operations (Portals 4, section 3.17) or work
 * requests that wait for others.
 *
 * Arrays stay the caller's, and as they are, until the collective has ended (GB_COMPLETION_COLLECTIVE_ENDED).
 */
#ifndef GRADBED_COLLECTIVES_H
#define GRADBED_COLLECTIVES_H

#include "engine/engine.h"

#define GB_TURN_BITS 18             /* the lowest of a message's tag; the others name the collective */

enum gb_step { GB_STEP_SEND, GB_STEP_RECEIVE, GB_STEP_ADD, GB_STEP_COPY };

/* What ranks that do the same share. Lists of several steps or peers lie one behind the other: that of i is from
 * its `from`[i] to `from`[i + 1]. */
struct gb_schedule {
    uint32_t steps, peers;
    const uint8_t *kinds;           /* of each step, enum gb_step */
    const uint32_t *waits;          /* for how many others each step waits */
    const uint32_t *dependents_from, *dependents;   /* which wait for it */
    const uint32_t *peer;           /* of each step, from 0 on */
    const uint32_t *turn;           /* of each send: which of those to its peer it is, from 0 on */
    const uint32_t *receives_from, *receives;       /* from each peer, in order */
};

struct gb_collective {
    uint64_t tag;                   /* its lowest GB_TURN_BITS are 0; the same at all ranks */
    const struct gb_schedule *schedule;
    const uint32_t *pairs;          /* the queue pair to each peer; 0: there is none */
    const uint32_t *by_pair;        /* peers in the order of their queue pairs' numbers */
    const uint64_t *size_bytes;     /* of each step */
    uint8_t *buffer;                /* of integers of 32 bits; NULL: only lengths travel */
    const uint64_t *offset_bytes;   /* of each step in the buffer */
    const uint64_t *source_bytes;   /* of a copy; a message's contents are those of its offset */
};

/* What a consumer's collectives have sent, and what came for collectives that it has not begun. */
struct gb_collective_counts { uint64_t messages, bytes, early; };

/* 1 if all that changes the buffer is done already, 0 if a completion will report it. -EINVAL: no such consumer, a wrong
 * tag, or one that is taken. -ENOENT: no such queue pair, or one that is not for collectives. -ENOMEM. */
int gb_engine_begin_collective(struct gb_engine *, uint32_t consumer, const struct gb_collective *);
/* While they are held, collectives send nothing: their owner is paused. */
int gb_engine_hold_collectives(struct gb_engine *, uint32_t consumer, uint32_t held);
int gb_engine_collective_counts(struct gb_engine *, uint32_t consumer, struct gb_collective_counts *);

#endif
