/* The order of one thread (lookahead_windows.c): what LPs cause in a window, and the numbers that it gets afterwards. */
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/parallel/lookahead_windows.h"

/* ---- What is caused in a window ---- */

bool lookahead_grow(void **array, uint32_t *capacity, size_t element_bytes) {
    uint32_t larger = *capacity ? *capacity * 2 : 1024;
    void *grown = realloc(*array, larger * element_bytes);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

void causes_note(struct causes *causes, struct timer *timer, struct packet *packet) {
    if (causes->count == causes->capacity && !lookahead_grow((void **)&causes->causes, &causes->capacity, sizeof *causes->causes))
        abort();                    /* a few megabytes: nothing else works without them, either */
    causes->causes[causes->count++] = (struct cause){timer, packet};
}

void causes_forget(struct causes *causes, const struct packet *packet) {
    uint64_t number = packet->sequence - causes->base;
    if (number < causes->count && causes->causes[number].packet == packet)
        causes->causes[number].packet = NULL;
}

void lookahead_cross(struct logical_process *lp, struct link_direction *direction, struct packet *packet, uint64_t arrival_ns) {
    struct side *side = lp->side;
    struct crossings *box = &side->boxes[side->parity][direction->peer_lp - lp->engine->lps];
    if (box->count == box->capacity && !lookahead_grow((void **)&box->crossings, &box->capacity, sizeof *box->crossings))
        abort();
    causes_forget(&side->causes, packet);
    uint64_t number = timer_number(&lp->timers) - side->causes.base;
    box->crossings[box->count++] = (struct crossing){packet, packet->view.data, direction, arrival_ns, number};
    if (arrival_ns < side->crossing_ns[side->parity])
        side->crossing_ns[side->parity] = arrival_ns;
}

/* ---- Afterwards ---- */

/* The numbers that one thread gives: of an event, and of what it caused. */
static uint64_t number_of(const struct numbers *numbers, uint64_t base, uint64_t sequence) {
    return sequence < base ? sequence : numbers->of[sequence - base];
}

static bool reserve_numbers(struct numbers *numbers, uint32_t count) {
    while (numbers->capacity < count)
        if (!lookahead_grow((void **)&numbers->of, &numbers->capacity, sizeof *numbers->of))
            return false;
    return true;
}

void lookahead_merge(struct lookahead *lookahead, struct side *side, uint64_t base) {
    uint32_t parity = side->parity, heads[GB_MAX_LPS] = {0}, caused[GB_MAX_LPS] = {0};
    uint64_t next = base;
    for (uint32_t i = 0; i < lookahead->count; i++)
        if (!reserve_numbers(&side->numbers[i], lookahead->sides[i].caused[parity]))
            abort();
    for (;;) {
        const struct event *first = NULL;
        uint64_t first_number = 0;
        uint32_t of = 0;
        for (uint32_t i = 0; i < lookahead->count; i++) {
            const struct events *events = &lookahead->sides[i].events[parity];
            if (heads[i] == events->count)
                continue;
            const struct event *event = &events->events[heads[i]];
            if (first && event->due_ns > first->due_ns)
                continue;
            uint64_t number = number_of(&side->numbers[i], base, event->sequence);
            bool together = first && event->due_ns == first->due_ns;
            if (!together || (event->is_last != first->is_last ? first->is_last : number < first_number)) {
                first = event;
                first_number = number;
                of = i;
            }
        }
        if (!first)
            return;
        heads[of]++;
        while (caused[of] < first->caused)
            side->numbers[of].of[caused[of]++] = next++;
    }
}

/* From the last one on, so that no number that was given is taken for one of the window's own. */
void lookahead_renumber(struct side *side, uint64_t base) {
    struct timer_queue *timers = &side->lp->timers;
    const uint64_t *numbers = side->numbers[side->lp - side->lp->engine->lps].of;
    for (uint32_t i = side->causes.count; i-- > 0;) {
        const struct cause *cause = &side->causes.causes[i];
        if (cause->packet && cause->packet->sequence == base + i)
            cause->packet->sequence = numbers[i];
        if (cause->timer && timer_armed(cause->timer) && cause->timer->sequence == base + i)
            timer_renumber(timers, cause->timer, numbers[i]);
    }
    side->causes.count = 0;
}
