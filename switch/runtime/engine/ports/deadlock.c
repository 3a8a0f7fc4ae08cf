/* Deadlocks of links with PFC: pauses that wait for each other in a circle (a cyclic buffer dependency; Hu et al.,
 * "Deadlocks in Datacenter Networks: Why Do They Form, and How to Avoid Them", HotNets 2016).
 *
 * A paused priority of a link is stuck for good if more than xon of what came by it waits in queues that are stuck themselves.
 * The greatest set of which that holds is found by taking all that are paused, and leaving out what can go on until
 * nothing is left to leave out. So what is reported never ends by itself, and what is not does.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/ports/pfc.h"

static const uint64_t WATCH_NS = 10000000;

/* What is stuck: by direction and priority. Of those the bytes in stuck queues, and the direction and priority of one such
 * queue. */
struct stuck { uint8_t *priorities; uint64_t (*bytes)[GB_PRIORITIES]; uint32_t (*next)[GB_PRIORITIES]; };

static void count_stuck(const struct gb_engine *engine, struct stuck *stuck) {
    memset(stuck->bytes, 0, engine->direction_count * sizeof *stuck->bytes);
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        for (uint32_t priority = 0; stuck->priorities[i] >> priority; priority++) {
            if (!(stuck->priorities[i] >> priority & 1))
                continue;
            const struct packet *packet = engine->directions[i]->queue.lists[priority].first;
            for (; packet; packet = packet->next) {
                if (!packet->buffered_bytes)
                    continue;
                stuck->bytes[packet->came_by->number][packet->came_priority] += packet->buffered_bytes;
                stuck->next[packet->came_by->number][packet->came_priority] = i * GB_PRIORITIES + priority;
            }
        }
    }
}

/* Whether any could be left out. */
static bool leave_out(const struct gb_engine *engine, struct stuck *stuck) {
    bool changed = false;
    for (uint32_t i = 0; i < engine->direction_count; i++)
        for (uint32_t priority = 0; stuck->priorities[i] >> priority; priority++)
            if ((stuck->priorities[i] >> priority & 1) &&
                stuck->bytes[i][priority] <= engine->directions[i]->model->pfc_xon_bytes) {
                stuck->priorities[i] &= (uint8_t)~(1u << priority);
                changed = true;
            }
    return changed;
}

static uint32_t follow(const struct gb_engine *engine, const struct stuck *stuck, struct gb_pause *circle,
                       uint32_t capacity) {
    uint32_t at = 0, count = 0;
    while (at < engine->direction_count && !stuck->priorities[at])
        at++;
    if (at == engine->direction_count)
        return 0;
    at = at * GB_PRIORITIES + (uint32_t)__builtin_ctz(stuck->priorities[at]);
    /* After as many steps as there are places it is in a circle. */
    for (uint32_t i = 0; i < engine->direction_count * GB_PRIORITIES; i++)
        at = stuck->next[at / GB_PRIORITIES][at % GB_PRIORITIES];
    uint32_t begin = at;
    do {
        const struct gb_link_statistics *link = &engine->directions[at / GB_PRIORITIES]->statistics;
        if (count < capacity)
            circle[count] = (struct gb_pause){link->device_id, link->port, link->outwards, at % GB_PRIORITIES};
        count++;
        at = stuck->next[at / GB_PRIORITIES][at % GB_PRIORITIES];
    } while (at != begin);
    return count;
}

uint32_t pfc_deadlock(struct gb_engine *engine, struct gb_pause *circle, uint32_t capacity) {
    uint32_t directions = engine->direction_count, count = 0;
    struct stuck stuck = {calloc(directions, 1), calloc(directions, sizeof *stuck.bytes),
                          calloc(directions, sizeof *stuck.next)};
    if (stuck.priorities && stuck.bytes && stuck.next) {
        for (uint32_t i = 0; i < directions; i++)
            if (engine->directions[i]->pfc)
                stuck.priorities[i] = engine->directions[i]->pfc->asked;
        do
            count_stuck(engine, &stuck);
        while (leave_out(engine, &stuck));
        count = follow(engine, &stuck, circle, capacity);
    }
    free(stuck.priorities);
    free(stuck.bytes);
    free(stuck.next);
    return count;
}

static bool paused_for_long(const struct gb_engine *engine, uint64_t now_ns) {
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        const struct link_direction *direction = engine->directions[i];
        for (uint32_t priority = 0; direction->paused >> priority; priority++)
            if (direction_paused(direction, priority) && now_ns - direction->pfc->since_ns[priority] >= WATCH_NS)
                return true;
    }
    return false;
}

bool pfc_watch(struct gb_engine *engine) {
    engine->watch_ns = engine->now_ns + WATCH_NS;
    return paused_for_long(engine, engine->now_ns) && pfc_deadlock(engine, NULL, 0) > 0;
}
