/* Partitions: each has the timers, the packets and the time of some of the switches, and of the hosts' ports at them. An
 * engine with one is an ordinary simulation. With more, an event belongs to one partition and touches nothing of another,
 * but for what it puts in flight on a link that leads there: so partitions can be worked on side by side (windows.c).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

bool partitions_create(struct gb_engine *engine, uint32_t count) {
    engine->partitions = aligned_alloc(APART, count * sizeof *engine->partitions);
    if (!engine->partitions)
        return false;
    memset(engine->partitions, 0, count * sizeof *engine->partitions);
    engine->partition_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct partition *part = &engine->partitions[i];
        part->engine = engine;
        part->ready = &engine->ready;
        part->timers.next_sequence = &engine->next_sequence;
        part->timers.one_by_one = count > 1;
        part->pool.bytes = &engine->pool_bytes;
        if (!timer_queue_open(&part->timers))
            return false;
    }
    return true;
}

void partitions_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->partition_count; i++) {
        packet_pool_free(&engine->partitions[i].pool);
        timer_queue_free(&engine->partitions[i].timers);
        arena_free(&engine->partitions[i].arena);
    }
    for (uint32_t i = 0; i < engine->partition_count; i++)
        packet_pool_free_hollow(&engine->partitions[i].pool);
    free(engine->partitions);
}

bool partitions_reserve(struct gb_engine *engine, uint32_t timers) {
    for (uint32_t i = 0; i < engine->partition_count; i++)
        if (!timer_queue_reserve(&engine->partitions[i].timers, timers))
            return false;
    return true;
}

void partitions_set_now(struct gb_engine *engine, uint64_t now_ns) {
    engine->now_ns = now_ns;
    for (uint32_t i = 0; i < engine->partition_count; i++)
        engine->partitions[i].now_ns = now_ns;
}

void partition_count_lateness(struct partition *part, uint64_t late_ns) {
    struct gb_engine_statistics *statistics = &part->statistics;
    uint64_t late_us = late_ns / 1000;
    uint32_t place = late_us ? 64 - (uint32_t)__builtin_clzll(late_us) : 0;
    statistics->timers_fired++;
    statistics->late_ns_total += late_ns;
    if (late_ns > statistics->late_ns_max)
        statistics->late_ns_max = late_ns;
    statistics->late_counts[place < GB_LATE_COUNTS ? place : GB_LATE_COUNTS - 1]++;
}

void partition_work_on(struct partition *part, struct packet *packet) {
    if (packet->stage == STAGE_ENQUEUE)
        pipeline_enqueue(part, packet, packet->port);
    else
        pipeline_begin(part, packet);
}

uint64_t partitions_live(const struct gb_engine *engine) {
    uint64_t live = 0;
    for (uint32_t i = 0; i < engine->partition_count; i++)
        live += engine->partitions[i].pool.live;
    return live;
}

uint64_t partitions_arrived(const struct gb_engine *engine) {
    uint64_t arrived = 0;
    for (uint32_t i = 0; i < engine->partition_count; i++)
        arrived += engine->partitions[i].arrived_packets;
    return arrived;
}

/* With the port that is due since the earliest; NULL: none is. */
static struct partition *next_due(const struct gb_engine *engine) {
    struct partition *first = NULL;
    for (uint32_t i = 0; i < engine->partition_count; i++) {
        struct partition *part = &engine->partitions[i];
        if (part->due_first && (!first || part->due_first->due_order < first->due_first->due_order))
            first = part;
    }
    return first;
}

uint64_t partitions_due_order(const struct gb_engine *engine) {
    const struct partition *part = next_due(engine);
    return part ? part->due_first->due_order : UINT64_MAX;
}

static struct memory_port *pop_due(struct partition *part) {
    struct memory_port *port = part->due_first;
    part->due_first = port->next_due;
    port->due = false;
    return port;
}

uint32_t partitions_take_due(struct gb_engine *engine, uint64_t order, uint32_t *numbers, uint32_t capacity) {
    uint32_t count = 0;
    struct partition *part;
    while (count < capacity && (part = next_due(engine)) && part->due_first->due_order < order)
        numbers[count++] = pop_due(part)->number;
    return count;
}

void partitions_statistics(struct gb_engine *engine, struct gb_engine_statistics *statistics) {
    *statistics = (struct gb_engine_statistics){
        .live_packets = partitions_live(engine),
        .pool_bytes = engine->pool_bytes,
    };
    for (uint32_t i = 0; i < engine->partition_count; i++) {
        const struct gb_engine_statistics *own = &engine->partitions[i].statistics;
        statistics->timers_fired += own->timers_fired;
        statistics->late_ns_total += own->late_ns_total;
        if (own->late_ns_max > statistics->late_ns_max)
            statistics->late_ns_max = own->late_ns_max;
        for (uint32_t place = 0; place < GB_LATE_COUNTS; place++)
            statistics->late_counts[place] += own->late_counts[place];
    }
}

bool partition_alone_now(struct partition *part) {
    struct gb_engine *engine = part->engine;
    if (part->side)
        return timer_next(&part->timers)->due_ns > part->now_ns;
    for (uint32_t i = 0; i < engine->partition_count; i++)
        if (timer_next(&engine->partitions[i].timers)->due_ns <= part->now_ns)
            return false;
    return true;
}
