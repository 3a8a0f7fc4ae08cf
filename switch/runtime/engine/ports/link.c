/* The link model: drop-tail queues, a transmitter of a given rate, random loss and duplication, propagation.
 *
 *   offer -> queue -> [egress pipeline] -> transmitter (length * 8 / rate) -> bit errors, loss, duplication -> delay -> far end
 *
 * Each priority has a queue; the transmitter takes the largest priority first, and does not stop in the middle of a
 * packet. A packet leaves its queue when the transmitter begins to send it; only then does its egress pipeline run, so
 * its queueing metadata are true. What egress drops takes no time on the link.
 *
 * A cable may have several channels, such as the wavelengths of a fibre: one for each priority, with the link's whole
 * rate and a queue and a transmitter of its own. They may take turns, as on a fibre that a switch joins to one other
 * fibre after the other: gates that open and close by time (IEEE 802.1Qbv).
 *
 * Behind an interface there may be a slower transmitter, the kernel's (HTB, a network card). When its queue is full,
 * this one waits, so that packets queue here, where programs see them.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/ports/classes.h"
#include "engine/ports/pfc.h"
#include "engine/random.h"
#include "engine/transport/card.h"

static void departure_due(struct partition *part, void *direction);
static void arrive(struct partition *part, void *direction);
static void look_at_arrival(const void *direction, unsigned step);
static void look_at_departure(const void *direction, unsigned step);

struct direction *direction_create(struct gb_engine *engine, const struct gb_link_model *model, struct device *device,
                                   uint32_t port, bool outwards) {
    struct direction **directions =
        realloc(engine->directions, (engine->direction_count + 1) * sizeof *engine->directions);
    if (!directions)
        return NULL;
    engine->directions = directions;
    struct direction *direction = arena_take(&device->part->arena, sizeof *direction);
    if (!direction || !partitions_reserve(engine, 2) || !direction_set_model(engine, direction, model))
        return NULL;
    direction->number = engine->direction_count;
    direction->part = direction->far = device->part;
    direction->whole = direction;
    /* Seeds of neighbouring links are neighbouring numbers; their generators must be far apart. */
    uint64_t seed = model->seed;
    direction->random_state = random_next(&seed);
    direction->jitter_state = random_next(&seed);
    direction->error_state = random_next(&seed);
    direction->bits_to_error = -1;
    static const struct timer_kind departures = {.fire = departure_due, .look_ahead = look_at_departure};
    static const struct timer_kind arrivals = {.fire = arrive, .look_ahead = look_at_arrival};
    direction->departure = (struct timer){.kind = &departures, .owner = direction};
    direction->arrival = (struct timer){.kind = &arrivals, .owner = direction};
    direction->reported = true;
    direction->statistics.device_id = device->device_id;
    direction->statistics.port = port;
    direction->statistics.outwards = outwards;
    if (outwards) {
        direction->egress = device;
        direction->egress_port = port;
    } else {
        direction->far_end = TO_PIPELINE;
        direction_lead_to(direction, device, port);
    }
    engine->directions[engine->direction_count++] = direction;
    return direction;
}

void direction_lead_to(struct direction *direction, struct device *device, uint32_t port) {
    direction->to = device;
    direction->to_port = port;
    direction->far = device->part;
    for (uint32_t i = 0; i < direction->more_channels; i++)
        direction->channels[i]->far = device->part;
}

bool direction_split(struct gb_engine *engine, struct direction *whole, uint32_t channels) {
    while (whole->more_channels + 1u < channels) {
        struct direction *channel =
            direction_create(engine, whole->model, whole->egress, whole->egress_port, true);
        if (!channel)
            return false;
        channel->reported = false;
        channel->whole = whole;
        channel->far = whole->far;
        whole->channels[whole->more_channels++] = channel;
        channel->channel = whole->more_channels;
    }
    return true;
}

static inline struct direction *whole_of(const struct direction *channel) {
    return channel->channel ? channel->whole : (struct direction *)channel;
}

static struct direction *channel_of(struct direction *whole, uint32_t priority) {
    uint32_t number = priority < whole->more_channels ? priority : whole->more_channels;
    return number ? whole->channels[number - 1] : whole;
}

void direction_report(const struct direction *direction, uint64_t now_ns, struct gb_link_statistics *row) {
    *row = direction->statistics;
    row->time_ns = now_ns;
    row->packets = direction->packets;
    row->bytes = direction->bytes;
    row->entered_bytes = direction->entered_bytes;
    if (direction->far_end != TO_OUTSIDE)
        row->channel_bytes[0] = row->bytes - row->duplicate_bytes;
    for (uint32_t number = 0; number <= direction->more_channels; number++) {
        const struct direction *channel = number ? direction->channels[number - 1] : direction;
        row->queued += channel->queue.count;
        row->in_flight += channel->flight.count;
        if (number)
            row->channel_bytes[0] -= row->channel_bytes[number];
    }
    if (direction->paused)
        pfc_add_running(direction, now_ns, row);
}

void direction_count(struct direction *direction, const struct packet *packet, bool accepted) {
    struct gb_link_statistics *statistics = &direction->statistics;
    uint32_t length = packet->view.length;
    if (direction->classes)
        classes_reached(direction, packet, accepted);
    if (accepted) {
        direction->packets++;
        direction->bytes += length;
        if (packet->duplicate) {
            statistics->duplicates++;
            statistics->duplicate_bytes += length;
        }
    } else if (!packet->duplicate) {
        statistics->queue_drops++;
        statistics->queue_drop_bytes += length;
    }
}

static void count_handed(struct device *device, const struct packet *packet) {
    if (device->classes)
        device->classes->handed[packet->class_number]++;
}

static void deliver(struct partition *part, struct direction *channel, struct packet *packet) {
    struct direction *direction = whole_of(channel);
    if (direction->tapped && direction->arrivals)
        captures_take(part, direction->arrivals, packet, false);
    if (packet->stage == STAGE_PAUSE) {
        pfc_take(part, direction, packet);
        return;
    }
    packet->direction = direction;
    if (direction->far_end == TO_OUTSIDE) {
        direction->io->kind->send(part, direction->io, packet);
        return;
    }
    direction_count(direction, packet, true);
    if (channel->channel && !packet->duplicate)
        direction->statistics.channel_bytes[channel->channel] += packet->view.length;
    switch (direction->far_end) {
    case TO_PIPELINE:
        if (direction->to_port == direction->to->cpu_port) {
            direction->to->statistics.packet_outs++;
            if (direction->to->classes)
                direction->to->classes->from_controller[packet->class_number]++;
        }
        packet->came_by = direction->has_pfc ? direction : NULL;
        packet->came_priority = packet->priority;
        packet->device = direction->to;
        packet->port = direction->to_port;
        packet->stage = STAGE_PARSE;
        packet->duplicate = false;
        list_append(part->ready, packet);
        break;
    case TO_NOWHERE:
        direction->egress->statistics.no_port_drops++;
        count_handed(direction->egress, packet);
        packet_free(&part->pool, packet);
        break;
    default:
        direction->egress->statistics.packet_ins++;
        count_handed(direction->egress, packet);
        upcall_send(direction->egress, GB_UPCALL_PACKET_IN, 0, packet->view.data, packet->view.length);
        packet_free(&part->pool, packet);
    }
}

static void arrive(struct partition *part, void *owner) {
    struct direction *direction = owner;
    struct packet *packet;
    while ((packet = timed_pop(&part->timers, &direction->flight, &direction->arrival, part->now_ns)))
        deliver(part, direction, packet);
}

void direction_look_at(const struct direction *direction, const struct partition *part) {
    gb_look_at_line(&direction->egress);
    if (direction->far == part)
        gb_look_at_line(&direction->arrival);
}

static void look_at_packet(const struct packet *packet) {
    gb_look_at_lines(packet, gb_lines_of(sizeof *packet));
}

static void look_at_arrival(const void *owner, unsigned step) {
    const struct direction *channel = owner, *direction = whole_of(channel), *to = direction->lately_to;
    const struct packet *packet = channel->flight.first;
    if (!packet)
        return;
    if (step == 0) {
        gb_look_at_line(&direction->far);
        gb_look_at_line(&direction->packets);
        look_at_packet(packet);
    } else if (direction->far_end == TO_PIPELINE) {
        if (step == 1 && to)
            direction_look_at(to, direction->far);
        else if (step == 2 && to)
            gb_look_at_line(&direction->to->ports[to->egress_port]);
        pipeline_look_ahead(direction, packet, step);
    } else if (direction->far_end == TO_OUTSIDE && step <= 2) {
        gb_look_at_line((const char *)direction->io + (step - 1) * GB_LINE_BYTES);
    }
    if (step == 1) {
        gb_look_at_line(packet->view.data);
        if (packet->next)
            look_at_packet(packet->next);
    }
}

/* Of the largest priority. */
static const struct packet *first_waiting(const struct packet_queue *queue) {
    return queue->occupied ? queue->lists[31 - __builtin_clz(queue->occupied)].first : NULL;
}

static void look_at_departure(const void *owner, unsigned step) {
    const struct direction *direction = owner;
    if (step == 0) {
        direction_look_at(direction, direction->part);
        return;
    }
    const struct packet *packet = first_waiting(&direction->queue);
    const struct device *device = direction->egress;
    if (packet && step == 1)
        look_at_packet(packet);
    else if (packet && step == 2 && packet->view.pass)
        gb_look_at_lines(packet->view.pass, gb_lines_of(sizeof *packet->view.pass));
    if (device && step == 2)
        gb_look_at_line(device);
    else if (device && step == 3 && device->state)
        gb_look_at_lines(device->state, 2);
}

static void propagate(struct partition *part, struct direction *direction, struct packet *packet,
                      uint64_t arrival_ns) {
    /* At once, unless there are other events of this time. */
    if (arrival_ns == part->now_ns && direction->far == part && partition_alone_now(part))
        deliver(part, direction, packet);
    else if (direction->far != part && part->side)
        window_cross(part, direction, packet, arrival_ns);
    else
        timed_put(&direction->far->timers, &direction->flight, &direction->arrival, packet, arrival_ns);
}

/* When a packet that is sent by then will be at the far end. */
static uint64_t arrival_time(struct direction *direction, uint64_t sent_ns) {
    const struct gb_link_model *model = direction->whole->model;
    uint64_t arrival_ns = sent_ns + model->delay_ns;
    if (model->jitter_ns) {
        uint64_t drawn = random_next(&direction->whole->jitter_state);
        arrival_ns -= model->jitter_ns;
        arrival_ns += (uint64_t)((unsigned __int128)drawn * (2 * model->jitter_ns + 1) >> 64);
    }
    if (direction->last_arrival_ns < arrival_ns)
        direction->last_arrival_ns = arrival_ns;
    return model->reorder ? arrival_ns : direction->last_arrival_ns;
}

static void begin(struct partition *part, struct direction *whole, const struct packet *packet, bool lost) {
    if (whole->tapped && whole->departures)
        captures_take(part, whole->departures, packet, lost);
}

static void lose(struct partition *part, struct direction *direction, struct packet *packet) {
    begin(part, direction->whole, packet, true);
    direction->whole->statistics.losses++;
    direction->whole->statistics.lost_bytes += packet->view.length;
    if (direction->whole->classes)
        classes_lost(direction->whole, packet);
    packet_free(&part->pool, packet);
}

/* How many bits arrive right before the next wrong one: a geometric distribution. */
static double bits_until_error(struct direction *whole) {
    double uniform = ((double)(random_next(&whole->error_state) >> 11) + 1) * 0x1p-53;
    return floor(log(uniform) / log1p(-whole->model->bit_error_rate));
}

/* Whether a bit of the frame arrives wrong. One draw for each error, not for each frame. */
static bool has_bit_error(struct direction *whole, uint32_t length) {
    double bits = 8.0 * length;
    if (whole->bits_to_error < 0)
        whole->bits_to_error = bits_until_error(whole);
    bool wrong = whole->bits_to_error < bits;
    whole->bits_to_error = wrong ? -1 : whole->bits_to_error - bits;
    return wrong;
}

/* When a frame whose transmission begins now has been sent. What is left of a nanosecond is carried over to the next
 * one that follows at once: rates are exact, however short the frames. */
static uint64_t sending_ends(struct direction *direction, uint64_t length, uint64_t now_ns) {
    uint64_t rate_bps = direction->whole->model->rate_bps;
    uint64_t bit_ns = length * UINT64_C(8000000000);
    if (direction->busy_until_ns == now_ns)
        bit_ns += direction->busy_remainder;
    direction->busy_remainder = bit_ns % rate_bps;
    return now_ns + bit_ns / rate_bps;
}

static void transmit(struct partition *part, struct direction *direction, struct packet *packet) {
    struct direction *whole = direction->whole;
    const struct gb_link_model *model = whole->model;
    uint64_t sent_ns = part->now_ns;
    if (whole->classes)
        classes_started(whole, packet);
    if (model->rate_bps) {
        sent_ns = direction->busy_until_ns = sending_ends(direction, packet->view.length, sent_ns);
        direction->backlog_bytes += packet->view.length;
    }
    if (whole->cut) {
        lose(part, direction, packet);
        return;
    }
    uint64_t arrival_ns = arrival_time(direction, sent_ns);
    if (model->bit_error_rate > 0 && has_bit_error(whole, packet->view.length)) {
        lose(part, direction, packet);
        return;
    }
    if (model->loss_threshold | model->duplicate_threshold) {
        /* Two draws per packet, whatever they are used for: so decisions depend on seed and order alone. */
        uint64_t loss = random_next(&whole->random_state);
        uint64_t duplication = random_next(&whole->random_state);
        if (loss < model->loss_threshold) {
            lose(part, direction, packet);
            return;
        }
        if (duplication < model->duplicate_threshold) {
            begin(part, whole, packet, false);
            struct packet *duplicate = packet_copy_frame(&part->pool, packet, part->pool.headroom_bytes);
            propagate(part, direction, packet, arrival_ns);
            if (duplicate) {
                duplicate->duplicate = true;
                propagate(part, direction, duplicate, arrival_ns);
            }
            return;
        }
    }
    begin(part, whole, packet, false);
    propagate(part, direction, packet, arrival_ns);
}

void direction_send_ahead(struct partition *part, struct direction *direction, struct packet *frame) {
    uint64_t sent_ns = part->now_ns;
    if (direction->model->rate_bps) {
        uint64_t begin_ns = direction->busy_until_ns > sent_ns ? direction->busy_until_ns : sent_ns;
        sent_ns = direction->busy_until_ns = sending_ends(direction, frame->view.length, begin_ns);
        direction->backlog_bytes += frame->view.length;
    }
    begin(part, direction, frame, false);
    propagate(part, direction, frame, arrival_time(direction, sent_ns));
}

static void depart(struct partition *part, struct direction *direction, struct packet *packet) {
    if (!direction->egress || pipeline_egress(part, direction, packet))
        transmit(part, direction, packet);
}

/* From then on, or from later on, a channel that takes turns may begin to send. */
static uint64_t turn_from(const struct direction *channel, uint64_t from_ns) {
    const struct gb_link_model *model = channel->whole->model;
    if (!model->turn_ns || !channel->channel)
        return from_ns;
    uint64_t others = channel->whole->more_channels, turn = from_ns / model->turn_ns;
    uint64_t ahead = (channel->channel - 1 + others - (turn + model->first_turn) % others) % others;
    if (ahead == 0) {
        if (from_ns % model->turn_ns < model->turn_ns - model->guard_ns)
            return from_ns;
        ahead = others;
    }
    return (turn + ahead) * model->turn_ns;
}

static bool idle(const struct partition *part, const struct direction *direction) {
    return direction->busy_until_ns <= part->now_ns && turn_from(direction, part->now_ns) == part->now_ns &&
           !(direction->io && direction->io->blocked);
}

/* Whether anything waits in the queue that PFC lets it send, or on the host's card. */
static bool waits_in_queue(const struct direction *direction) {
    return direction->queue.occupied & ~(uint32_t)direction->paused;
}

static bool waits(const struct direction *direction) {
    return waits_in_queue(direction) || card_ready(direction->card);
}

/* What is behind a blocked port, or paused, wakes up by itself. */
static void depart_when_idle(struct partition *part, struct direction *direction) {
    if (!waits(direction) || timer_armed(&direction->departure))
        return;
    bool busy = direction->busy_until_ns > part->now_ns;
    uint64_t due_ns = turn_from(direction, busy ? direction->busy_until_ns : part->now_ns);
    if (due_ns > part->now_ns)
        timer_arm(&part->timers, &direction->departure, due_ns);
}

/* Called when the transmitter turns to the next waiting packet: what it sent before took until now. Who takes turns
 * cannot be held to a rate. */
static void count_backlog(struct partition *part, struct direction *direction) {
    if (direction->whole->model->turn_ns)
        return;
    if (direction->backlog_start_ns) {
        uint64_t taken_ns = part->clock_ns - direction->backlog_start_ns;
        if (taken_ns < GB_BACKLOG_NS)
            return;
        direction->whole->statistics.backlogged_bytes += direction->backlog_bytes;
        direction->whole->statistics.backlogged_ns += taken_ns;
    }
    direction->backlog_start_ns = part->clock_ns;
    direction->backlog_bytes = 0;
}

/* From the queue, and from the host's card: by turns, if both have some. */
static struct packet *take_next(struct partition *part, struct direction *direction) {
    struct packet *packet = NULL;
    if (card_ready(direction->card) && (direction->card_next || !waits_in_queue(direction)))
        packet = card_next(part, direction->card);
    direction->card_next = !packet;
    return packet ? packet : queue_pop(&direction->queue, direction->paused);
}

static void depart_waiting(struct partition *part, struct direction *direction) {
    struct packet *next;
    while (idle(part, direction) && (next = take_next(part, direction))) {
        struct held held = pfc_let_go(next);
        count_backlog(part, direction);
        depart(part, direction, next);
        pfc_release(part, held);
    }
    if (!waits(direction))
        direction->backlog_start_ns = 0;
    depart_when_idle(part, direction);
}

static void departure_due(struct partition *part, void *direction) {
    depart_waiting(part, direction);
}

void direction_resume(struct partition *part, struct direction *direction) {
    depart_waiting(part, direction);
}

void direction_offer(struct partition *part, struct direction *whole, struct packet *packet) {
    struct direction *direction = whole;
    uint32_t priority = 0, waiting = queue_length(&direction->queue, 0);
    whole->entered_bytes += packet->view.length;
    if (direction->egress) {
        struct gb_standard_metadata *std = &packet->view.pass->std;
        priority = (uint32_t)std->priority;
        direction = channel_of(whole, priority);
        waiting = queue_length(&direction->queue, priority);
        std->enq_timestamp = (uint32_t)device_time_us(direction->egress, part->now_ns);
        std->enq_qdepth = waiting & GB_QDEPTH_MASK;
    } else {
        if (whole->has_pfc)
            waiting = direction->queue.lists[priority = pfc_priority(packet)].count;
        if (whole->classes)
            classes_entered(whole, packet);
    }
    packet->priority = (uint8_t)priority;
    if (!waits_in_queue(direction) && !direction_paused(direction, priority) && idle(part, direction)) {
        depart(part, direction, packet);
        return;
    }
    if (waiting >= whole->model->queue_packets) {
        whole->statistics.queue_drops++;
        whole->statistics.queue_drop_bytes += packet->view.length;
        if (whole->classes)
            classes_queue_drop(whole, packet);
        packet_free(&part->pool, packet);
        return;
    }
    queue_append(&direction->queue, priority, packet);
    depart_when_idle(part, direction);
    if (packet->came_by)
        pfc_hold(part, packet);
}
