/* The link model: a drop-tail queue, a transmitter of a given rate, random loss and duplication, propagation.
 *
 *   offer -> queue -> [egress pipeline] -> transmitter (length * 8 / rate) -> loss, duplication -> delay -> far end
 *
 * A packet leaves the queue when the transmitter begins to send it; only then does its egress pipeline run, so its
 * queueing metadata are true. What egress drops takes no time on the link.
 */
#include <stdlib.h>

#include "engine_internal.h"
#include "engine_random.h"

static void depart_waiting(struct gb_engine *engine, struct direction *direction);
static void arrive(struct gb_engine *engine, struct direction *direction);

struct direction *direction_create(struct gb_engine *engine, const struct gb_link_model *model, struct device *device,
                                   uint32_t port, bool outwards) {
    struct direction **directions =
        realloc(engine->directions, (engine->direction_count + 1) * sizeof *engine->directions);
    if (!directions)
        return NULL;
    engine->directions = directions;
    struct direction *direction = calloc(1, sizeof *direction);
    if (!direction || !timer_heap_reserve(&engine->timers, 2)) {
        free(direction);
        return NULL;
    }
    direction->model = *model;
    /* Seeds of neighbouring links are neighbouring numbers; their generators must be far apart. */
    uint64_t seed = model->seed;
    direction->random_state = random_next(&seed);
    direction->departure = (struct timer){.position = NO_TIMER, .fire = depart_waiting, .direction = direction};
    direction->arrival = (struct timer){.position = NO_TIMER, .fire = arrive, .direction = direction};
    direction->reported = true;
    direction->statistics.device_id = device->device_id;
    direction->statistics.port = port;
    direction->statistics.outwards = outwards;
    if (outwards) {
        direction->egress = device;
        direction->egress_port = port;
    } else {
        direction->far_end = TO_PIPELINE;
        direction->to = device;
        direction->to_port = port;
    }
    engine->directions[engine->direction_count++] = direction;
    return direction;
}

void direction_count(struct direction *direction, const struct packet *packet, bool accepted) {
    struct gb_link_statistics *statistics = &direction->statistics;
    uint32_t length = packet->view.length;
    if (accepted) {
        statistics->packets++;
        statistics->bytes += length;
        if (packet->duplicate) {
            statistics->duplicates++;
            statistics->duplicate_bytes += length;
        }
    } else if (!packet->duplicate) {
        statistics->queue_drops++;
        statistics->queue_drop_bytes += length;
    }
}

static void deliver(struct gb_engine *engine, struct direction *direction, struct packet *packet) {
    if (direction->far_end == TO_SOCKET) {
        /* Counted when the kernel has taken it. */
        packet->direction = direction;
        interface_send(engine, direction->interface, packet);
        return;
    }
    direction_count(direction, packet, true);
    switch (direction->far_end) {
    case TO_PIPELINE:
        packet->device = direction->to;
        packet->port = direction->to_port;
        packet->stage = STAGE_PARSE;
        packet->duplicate = false;
        list_append(&engine->ready, packet);
        break;
    case TO_DRAIN:
        packet->device = direction->egress;
        packet->port = direction->egress_port;
        packet->due_ns = engine->now_ns;
        list_append(&engine->drained, packet);
        break;
    default:
        upcall_send(direction->egress, GB_UPCALL_PACKET_IN, 0, packet->view.data, packet->view.length);
        packet_free(&engine->pool, packet);
    }
}

static void arrive(struct gb_engine *engine, struct direction *direction) {
    while (direction->flight.first && direction->flight.first->due_ns <= engine->now_ns)
        deliver(engine, direction, list_pop(&direction->flight));
    if (direction->flight.first)
        timer_arm(&engine->timers, &direction->arrival, direction->flight.first->due_ns);
}

static void propagate(struct gb_engine *engine, struct direction *direction, struct packet *packet,
                      uint64_t arrival_ns) {
    if (arrival_ns == engine->now_ns) {
        deliver(engine, direction, packet);
        return;
    }
    packet->due_ns = arrival_ns;
    list_append(&direction->flight, packet);
    if (direction->arrival.position == NO_TIMER)
        timer_arm(&engine->timers, &direction->arrival, direction->flight.first->due_ns);
}

static void transmit(struct gb_engine *engine, struct direction *direction, struct packet *packet) {
    const struct gb_link_model *model = &direction->model;
    uint64_t sent_ns = engine->now_ns;
    if (model->rate_bps) {
        sent_ns += packet->view.length * UINT64_C(8000000000) / model->rate_bps;
        direction->busy_until_ns = sent_ns;
    }
    if (model->loss_threshold | model->duplicate_threshold) {
        /* Two draws per packet, whatever they are used for: so decisions depend on seed and order alone. */
        uint64_t loss = random_next(&direction->random_state);
        uint64_t duplication = random_next(&direction->random_state);
        if (loss < model->loss_threshold) {
            direction->statistics.losses++;
            direction->statistics.lost_bytes += packet->view.length;
            packet_free(&engine->pool, packet);
            return;
        }
        if (duplication < model->duplicate_threshold) {
            struct packet *duplicate = packet_copy_frame(&engine->pool, packet);
            propagate(engine, direction, packet, sent_ns + model->delay_ns);
            if (duplicate) {
                duplicate->duplicate = true;
                propagate(engine, direction, duplicate, sent_ns + model->delay_ns);
            }
            return;
        }
    }
    propagate(engine, direction, packet, sent_ns + model->delay_ns);
}

static void depart(struct gb_engine *engine, struct direction *direction, struct packet *packet) {
    if (!direction->egress || pipeline_egress(engine, direction, packet))
        transmit(engine, direction, packet);
}

static void depart_waiting(struct gb_engine *engine, struct direction *direction) {
    while (direction->queue.first && direction->busy_until_ns <= engine->now_ns)
        depart(engine, direction, list_pop(&direction->queue));
    if (direction->queue.first)
        timer_arm(&engine->timers, &direction->departure, direction->busy_until_ns);
}

void direction_offer(struct gb_engine *engine, struct direction *direction, struct packet *packet) {
    uint32_t waiting = direction->queue.count;
    if (direction->egress) {
        packet->view.std.enq_timestamp = device_time_us(direction->egress, engine->now_ns);
        packet->view.std.enq_qdepth = waiting;
    }
    if (waiting == 0 && direction->busy_until_ns <= engine->now_ns) {
        depart(engine, direction, packet);
        return;
    }
    if (waiting >= direction->model.queue_packets) {
        direction->statistics.queue_drops++;
        direction->statistics.queue_drop_bytes += packet->view.length;
        packet_free(&engine->pool, packet);
        return;
    }
    list_append(&direction->queue, packet);
    if (direction->departure.position == NO_TIMER)
        timer_arm(&engine->timers, &direction->departure, direction->busy_until_ns);
}
