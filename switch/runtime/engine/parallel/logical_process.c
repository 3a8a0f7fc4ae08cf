/* Logical processes (LPs), as parallel discrete event simulation calls them: each has the timers, the packets and
 * the time of some of the switches, and of the hosts' ports at them. An engine with one is an ordinary simulation. With more, an event belongs to one LP and touches nothing of another,
 * but for what it puts in flight on a link that leads there: so LPs can be worked on side by side (lookahead_windows.c).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

bool lps_create(struct gb_engine *engine, uint32_t count) {
    engine->lps = aligned_alloc(APART, count * sizeof *engine->lps);
    if (!engine->lps)
        return false;
    memset(engine->lps, 0, count * sizeof *engine->lps);
    engine->lp_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct logical_process *lp = &engine->lps[i];
        lp->engine = engine;
        lp->ready = &engine->ready;
        lp->timers.next_sequence = &engine->next_sequence;
        lp->timers.one_by_one = count > 1;
        lp->pool.bytes = &engine->pool_bytes;
        if (!timer_queue_open(&lp->timers))
            return false;
    }
    return true;
}

void lps_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        packet_pool_free(&engine->lps[i].pool);
        timer_queue_free(&engine->lps[i].timers);
        arena_free(&engine->lps[i].arena);
    }
    for (uint32_t i = 0; i < engine->lp_count; i++)
        packet_pool_free_hollow(&engine->lps[i].pool);
    free(engine->lps);
}

bool lps_reserve(struct gb_engine *engine, uint32_t timers) {
    for (uint32_t i = 0; i < engine->lp_count; i++)
        if (!timer_queue_reserve(&engine->lps[i].timers, timers))
            return false;
    return true;
}

void lps_set_now(struct gb_engine *engine, uint64_t now_ns) {
    engine->now_ns = now_ns;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        engine->lps[i].now_ns = now_ns;
}

void lp_count_lateness(struct logical_process *lp, uint64_t late_ns) {
    struct gb_engine_statistics *statistics = &lp->statistics;
    uint64_t late_us = late_ns / 1000;
    uint32_t place = late_us ? 64 - (uint32_t)__builtin_clzll(late_us) : 0;
    statistics->timers_fired++;
    statistics->late_ns_total += late_ns;
    if (late_ns > statistics->late_ns_max)
        statistics->late_ns_max = late_ns;
    statistics->late_counts[place < GB_LATE_COUNTS ? place : GB_LATE_COUNTS - 1]++;
}

void lp_work_on(struct logical_process *lp, struct packet *packet) {
    if (packet->stage == STAGE_ENQUEUE)
        pipeline_enqueue(lp, packet, packet->port);
    else
        pipeline_begin(lp, packet);
}

uint64_t lps_live(const struct gb_engine *engine) {
    uint64_t live = 0;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        live += engine->lps[i].pool.live;
    return live;
}

uint64_t lps_arrived(const struct gb_engine *engine) {
    uint64_t arrived = 0;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        arrived += engine->lps[i].arrived_packets;
    return arrived;
}

/* With the port that is due since the earliest; NULL: none is. */
static struct logical_process *next_due(const struct gb_engine *engine) {
    struct logical_process *first = NULL;
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        struct logical_process *lp = &engine->lps[i];
        if (lp->due_first && (!first || lp->due_first->due_order < first->due_first->due_order))
            first = lp;
    }
    return first;
}

uint64_t lps_due_order(const struct gb_engine *engine) {
    const struct logical_process *lp = next_due(engine);
    return lp ? lp->due_first->due_order : UINT64_MAX;
}

static struct memory_port *pop_due(struct logical_process *lp) {
    struct memory_port *port = lp->due_first;
    lp->due_first = port->next_due;
    port->due = false;
    return port;
}

uint32_t lps_take_due(struct gb_engine *engine, uint64_t order, uint32_t *numbers, uint32_t capacity) {
    uint32_t count = 0;
    struct logical_process *lp;
    while (count < capacity && (lp = next_due(engine)) && lp->due_first->due_order < order)
        numbers[count++] = pop_due(lp)->number;
    return count;
}

void lps_statistics(struct gb_engine *engine, struct gb_engine_statistics *statistics) {
    *statistics = (struct gb_engine_statistics){
        .live_packets = lps_live(engine),
        .pool_bytes = engine->pool_bytes,
    };
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        const struct gb_engine_statistics *own = &engine->lps[i].statistics;
        statistics->timers_fired += own->timers_fired;
        statistics->late_ns_total += own->late_ns_total;
        if (own->late_ns_max > statistics->late_ns_max)
            statistics->late_ns_max = own->late_ns_max;
        for (uint32_t place = 0; place < GB_LATE_COUNTS; place++)
            statistics->late_counts[place] += own->late_counts[place];
    }
}

bool lp_alone_now(struct logical_process *lp) {
    struct gb_engine *engine = lp->engine;
    if (lp->side)
        return timer_next(&lp->timers)->due_ns > lp->now_ns;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        if (timer_next(&engine->lps[i].timers)->due_ns <= lp->now_ns)
            return false;
    return true;
}
