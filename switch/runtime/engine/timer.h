/* Timers (timer.c): earliest first, those of one time in the order in which they were caused. */
#ifndef GRADBED_TIMER_H
#define GRADBED_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct packet;
struct packet_list;
struct logical_process;

enum { WHEEL_SLOTS = 1 << 14, WHEEL_SLOT_BITS = 6 };        /* of 64 ns: a millisecond ahead */
enum timer_state { IDLE, ON_WHEEL, LATE, FAR };             /* ON_WHEEL also when its slot has become the present one */

/* How many steps there are at most. */
enum { TIMER_PREFETCH_STEPS = 5 };

struct timer_kind {
    void (*fire)(struct logical_process *, void *owner);
    /* Look at what firing will need (cache_lines.h): step by step, so that each finds in the cache what the one before looked
     * at. NULL: nothing. */
    void (*prefetch)(const void *owner, unsigned step);
};

struct timer {
    uint64_t due_ns, sequence;
    const struct timer_kind *kind;
    void *owner;
    uint32_t position;              /* LATE and FAR: in the heap; ON_WHEEL: where on the wheel */
    uint8_t state;                  /* enum timer_state */
};

/* Times lie beside the timers' addresses, so that ordering them touches no timer. */
struct timer_place { uint64_t due_ns, sequence; struct timer *timer; };
struct timer_heap { struct timer_place *places; uint32_t count; };

static inline bool timer_earlier(const struct timer_place *a, const struct timer_place *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

/* Places on the wheel: two lines of the cache. */
enum { CHUNK_PLACES = 5 };
struct timer_chunk { uint32_t next, count; struct timer_place places[CHUNK_PLACES]; };

/* Timers of the next millisecond lie in the slots of a wheel. When a slot's time comes, its timers are put in order:
 * they are the present ones. Those that are armed for the present slot, or an earlier one, go to the heap `late`, those
 * of later times than the wheel's to another. */
struct timer_queue {
    uint64_t slot;                  /* the present one */
    struct timer_place *present;    /* from first_present to before present_end, where one follows that is never due; those
                                     * that were stopped have no timer, but for the first one */
    uint32_t first_present, present_end;
    uint32_t prefetch_from;             /* once that place is the first, the next group is looked at */
    struct timer_heap late, far;
    struct timer_chunk *chunks;     /* on the wheel, and free ones; number 0 stands for none */
    uint32_t free_chunk, used_chunks;
    uint32_t slots[WHEEL_SLOTS];    /* lists of chunks: all but the first are full */
    uint64_t occupied[WHEEL_SLOTS / 64], occupied_words[WHEEL_SLOTS / 64 / 64];
    uint32_t count;                 /* of armed timers */
    uint32_t on_wheel;              /* in slots to come */
    uint32_t reserved;              /* timers that there may be */
    struct timer_place *sorting;    /* room for half of the present ones */
    uint64_t *next_sequence;
    bool one_by_one;                /* packets of one time: there are other LPs, whose events may come between */
    struct causes *causes;          /* NULL: numbers are those of the whole engine */
};

/* What is waiting since a window (parallel/lookahead_windows.c) began, by its number in that. Of packets on a timed list also that list's
 * timer, which may have the packet's number. */
struct cause { struct timer *timer; struct packet *packet; };
struct causes { struct cause *causes; uint32_t count, capacity; uint64_t base; };

void causes_note(struct causes *, struct timer *, struct packet *);
/* The packet goes to another LP, whose it is from then on: what was noted of it is not to be looked at. */
void causes_forget(struct causes *, const struct packet *);

static inline bool timer_armed(const struct timer *timer) {
    return timer->state != IDLE;
}

/* The first of those that are present or late; due at UINT64_MAX if there are none. */
static inline const struct timer_place *timer_first(const struct timer_queue *queue) {
    const struct timer_place *first = &queue->present[queue->first_present];
    return queue->late.count && timer_earlier(&queue->late.places[0], first) ? &queue->late.places[0] : first;
}

/* Let the timers of the next slot be present; there are some, and none is present or late. */
void timer_turn(struct timer_queue *);

/* The next timer; due at UINT64_MAX if none is armed. */
static inline const struct timer_place *timer_next(struct timer_queue *queue) {
    if (queue->first_present == queue->present_end && !queue->late.count && queue->count)
        timer_turn(queue);
    return timer_first(queue);
}

bool timer_queue_open(struct timer_queue *);        /* false when out of memory */
bool timer_queue_reserve(struct timer_queue *, uint32_t more);
void timer_queue_free(struct timer_queue *);
void timer_arm(struct timer_queue *, struct timer *, uint64_t due_ns);
/* Disarm it, if it is armed. */
void timer_stop(struct timer_queue *, struct timer *);
/* Take the next timer; there is one. */
struct timer *timer_pop(struct timer_queue *);
/* The number of something else that is caused now. */
uint64_t timer_number(struct timer_queue *);
/* Give an armed timer another number that leaves it in its place. */
void timer_renumber(struct timer_queue *, struct timer *, uint64_t sequence);

/* A timed list: packets in the order of their times, with one timer, that of the first. Each has its place among the
 * events of its time from when it was put there. */
void timed_put(struct timer_queue *, struct packet_list *, struct timer *, struct packet *, uint64_t due_ns);
/* The same, with that number. */
void timed_put_numbered(struct timer_queue *, struct packet_list *, struct timer *, struct packet *, uint64_t due_ns,
                        uint64_t sequence);
/* After the timer has fired, one after the other, until another event comes first. */
struct packet *timed_pop(struct timer_queue *, struct packet_list *, struct timer *, uint64_t now_ns);

#pragma GCC visibility pop
#endif
