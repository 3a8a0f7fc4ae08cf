/* Timers (timer.c): earliest first, those of one time in the order in which they were caused. */
#ifndef GRADBED_TIMER_H
#define GRADBED_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct packet;
struct packet_list;
struct partition;

enum { WHEEL_SLOTS = 1 << 14, WHEEL_SLOT_BITS = 6 };        /* of 64 ns: a millisecond ahead */
enum timer_state { IDLE, NEAR, ON_WHEEL, FAR };

struct timer {
    uint64_t due_ns, sequence;
    enum timer_state state;
    uint32_t position;              /* NEAR and FAR: in the heap */
    struct timer *next, **link;     /* ON_WHEEL: of the slot's list; link: what points here */
    void (*fire)(struct partition *, void *owner);
    void *owner;
};

/* Times lie in the heap itself: sifting touches timers only to tell them where they are. */
struct timer_place { uint64_t due_ns, sequence; struct timer *timer; };
struct timer_heap { struct timer_place *places; uint32_t count; };

static inline bool timer_earlier(const struct timer_place *a, const struct timer_place *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

/* Timers of the next millisecond hang in the slots of a wheel. When a slot's time comes, its timers go to a heap, which
 * is small; those of later times wait in another one. */
struct timer_queue {
    uint64_t slot;                  /* timers of this slot and of earlier ones are near */
    struct timer_heap near, far;
    struct timer *slots[WHEEL_SLOTS];
    uint64_t occupied[WHEEL_SLOTS / 64], occupied_words[WHEEL_SLOTS / 64 / 64];
    uint32_t count, on_wheel, capacity;
    uint64_t *next_sequence;
    bool one_by_one;                /* packets of one time: there are other partitions, whose events may come between */
    struct causes *causes;          /* NULL: numbers are those of the whole engine */
};

/* What is waiting since a window (partitions/windows.c) began, by its number in that. Of packets on a timed list also that list's
 * timer, which may have the packet's number. */
struct cause { struct timer *timer; struct packet *packet; };
struct causes { struct cause *causes; uint32_t count, capacity; uint64_t base; };

void causes_note(struct causes *, struct timer *, struct packet *);
/* The packet goes to another partition, whose it is from then on: what was noted of it is not to be looked at. */
void causes_forget(struct causes *, const struct packet *);

static inline bool timer_armed(const struct timer *timer) {
    return timer->state != IDLE;
}

/* Let the timers of the next slot be near; there are some. */
void timer_turn(struct timer_queue *);

/* When the next timer is due; UINT64_MAX if none is armed. */
static inline uint64_t timer_next_ns(struct timer_queue *queue) {
    if (!queue->near.count) {
        if (!queue->count)
            return UINT64_MAX;
        timer_turn(queue);
    }
    return queue->near.places[0].due_ns;
}

bool timer_queue_reserve(struct timer_queue *, uint32_t more);
void timer_queue_free(struct timer_queue *);
void timer_arm(struct timer_queue *, struct timer *, uint64_t due_ns);
/* Disarm it, if it is armed. */
void timer_stop(struct timer_queue *, struct timer *);
struct timer *timer_pop(struct timer_queue *);
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
