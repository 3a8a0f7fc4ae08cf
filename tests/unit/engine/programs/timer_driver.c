/* A timer queue beside a plain list of what is armed: `timer_driver SEED STEPS TIMERS SPREAD_NS`.
 *
 * Timers are armed at random times up to SPREAD_NS ahead, stopped, given larger numbers and taken. Each that is taken must
 * be the one that a search through the whole list finds. Exit status 1 if it is not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/internal.h"

enum { MOST_TIMERS = 4096 };

struct armed { bool armed; uint64_t due_ns, sequence; };

static struct timer timers[MOST_TIMERS];
static struct armed list[MOST_TIMERS];
static uint32_t timer_count;
static uint64_t state, looked_ahead;

static uint64_t drawn(uint64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static void prefetch(const void *owner, unsigned step) {
    looked_ahead += owner >= (const void *)timers && step < TIMER_PREFETCH_STEPS;
}

/* By looking at all; timer_count if none is armed. */
static uint32_t first_of_list(void) {
    uint32_t first = timer_count;
    for (uint32_t i = 0; i < timer_count; i++)
        if (list[i].armed && (first == timer_count || list[i].due_ns < list[first].due_ns ||
                              (list[i].due_ns == list[first].due_ns && list[i].sequence < list[first].sequence)))
            first = i;
    return first;
}

static void arm_at(struct timer_queue *queue, uint32_t i, uint64_t due_ns) {
    list[i] = (struct armed){true, due_ns, *queue->next_sequence};
    timer_arm(queue, &timers[i], due_ns);
}

static uint64_t pop(struct timer_queue *queue, uint64_t now_ns) {
    uint32_t wanted = first_of_list();
    const struct timer_place *next = timer_next(queue);
    if (wanted == timer_count)
        return next->due_ns == UINT64_MAX ? now_ns : 0;
    if (next->timer != &timers[wanted] || timer_pop(queue) != &timers[wanted] || timer_armed(&timers[wanted]))
        return 0;
    list[wanted].armed = false;
    return list[wanted].due_ns;
}

/* As at the end of a window: the last one first, all by as much. */
static void renumber(struct timer_queue *queue) {
    uint64_t from = *queue->next_sequence - drawn(1 + *queue->next_sequence % 200), more = 1 + drawn(50);
    for (uint64_t sequence = *queue->next_sequence; sequence-- > from;)
        for (uint32_t i = 0; i < timer_count; i++)
            if (list[i].armed && list[i].sequence == sequence) {
                list[i].sequence += more;
                timer_renumber(queue, &timers[i], sequence + more);
            }
    *queue->next_sequence += more;
}

int main(int count, char **arguments) {
    if (count != 5)
        return 2;
    state = strtoull(arguments[1], NULL, 10);
    uint64_t steps = strtoull(arguments[2], NULL, 10), spread_ns = strtoull(arguments[4], NULL, 10);
    timer_count = (uint32_t)strtoul(arguments[3], NULL, 10);
    static struct timer_queue queue;
    uint64_t next_sequence = 0, now_ns = 1;
    queue.next_sequence = &next_sequence;
    if (!timer_queue_open(&queue))
        return 2;
    for (uint32_t i = 0; i < timer_count; i++) {
        static const struct timer_kind kind = {.prefetch = prefetch};
        timers[i] = (struct timer){.kind = &kind, .owner = &timers[i]};
        if (!timer_queue_reserve(&queue, 1))
            return 2;
        arm_at(&queue, i, now_ns + drawn(spread_ns));
    }
    for (uint64_t step = 0; step < steps; step++) {
        uint32_t i = (uint32_t)drawn(timer_count);
        uint64_t what = drawn(400);
        if (what == 0) {
            renumber(&queue);
        } else if (what < 150) {
            if (list[i].armed)
                timer_stop(&queue, &timers[i]);
            list[i].armed = false;
        } else if (what < 270) {
            if (!list[i].armed)
                arm_at(&queue, i, now_ns + (drawn(4) ? drawn(spread_ns) : drawn(200)));
        } else if (!(now_ns = pop(&queue, now_ns))) {
            fprintf(stderr, "step %" PRIu64 ": another timer was expected\n", step);
            return 1;
        }
    }
    for (uint32_t left = queue.count; left > 0; left--)
        if (!pop(&queue, now_ns))
            return 1;
    printf("%s\n", looked_ahead ? "looked ahead" : "did not look ahead");
    timer_queue_free(&queue);
    return queue.count ? 1 : 0;
}
