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
 * Behind an interface there may be a slower transmitter, the kernel's (HTB, a NIC). When its queue is full,
 * this one waits, so that packets queue here, where programs see them.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/ports/classes.h"
#include "engine/ports/pfc.h"
#include "engine/random.h"
#include "engine/transport/nic.h"

static void departure_due(struct logical_process *lp, void *direction);
static void arrive(struct logical_process *lp, void *direction);
static void prefetch_arrival(const void *direction, unsigned step);
static void prefetch_departure(const void *direction, unsigned step);

struct link_direction *direction_create(struct gb_engine *engine, const struct gb_link_model *model, struct device *device,
                                   uint32_t port, bool outwards) {
    struct link_direction **directions =
        realloc(engine->directions, (engine->direction_count + 1) * sizeof *engine->directions);
    if (!directions)
        return NULL;
    engine->directions = directions;
    struct link_direction *direction = arena_take(&device->lp->arena, sizeof *direction);
    if (!direction || !lps_reserve(engine, 2) || !direction_set_model(engine, direction, model))
        return NULL;
    direction->number = engine->direction_count;
    direction->lp = direction->peer_lp = device->lp;
    direction->parent = direction;
    /* Seeds of neighbouring links are neighbouring numbers; their generators must be far apart. */
    uint64_t seed = model->seed;
    direction->random_state = random_next(&seed);
    direction->jitter_state = random_next(&seed);
    direction->error_state = random_next(&seed);
    direction->bits_to_error = -1;
    static const struct timer_kind departures = {.fire = departure_due, .prefetch = prefetch_departure};
    static const struct timer_kind arrivals = {.fire = arrive, .prefetch = prefetch_arrival};
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

void direction_lead_to(struct link_direction *direction, struct device *device, uint32_t port) {
    direction->to = device;
    direction->to_port = port;
    direction->peer_lp = device->lp;
    for (uint32_t i = 0; i < direction->more_channels; i++)
        direction->channels[i]->peer_lp = device->lp;
}

bool direction_split(struct gb_engine *engine, struct link_direction *parent, uint32_t channels) {
    while (parent->more_channels + 1u < channels) {
        struct link_direction *channel =
            direction_create(engine, parent->model, parent->egress, parent->egress_port, true);
        if (!channel)
            return false;
        channel->reported = false;
        channel->parent = parent;
        channel->peer_lp = parent->peer_lp;
        parent->channels[parent->more_channels++] = channel;
        channel->channel = parent->more_channels;
    }
    return true;
}

static inline struct link_direction *whole_of(const struct link_direction *channel) {
    return channel->channel ? channel->parent : (struct link_direction *)channel;
}

static struct link_direction *channel_of(struct link_direction *parent, uint32_t priority) {
    uint32_t number = priority < parent->more_channels ? priority : parent->more_channels;
    return number ? parent->channels[number - 1] : parent;
}

void direction_report(const struct link_direction *direction, uint64_t now_ns, struct gb_link_statistics *row) {
    *row = direction->statistics;
    row->time_ns = now_ns;
    row->packets = direction->packets;
    row->bytes = direction->bytes;
    row->entered_bytes = direction->entered_bytes;
    if (direction->far_end != TO_OUTSIDE)
        row->channel_bytes[0] = row->bytes - row->duplicate_bytes;
    for (uint32_t number = 0; number <= direction->more_channels; number++) {
        const struct link_direction *channel = number ? direction->channels[number - 1] : direction;
        row->queued += channel->queue.count;
        row->in_flight += channel->flight.count;
        if (number)
            row->channel_bytes[0] -= row->channel_bytes[number];
    }
    if (direction->paused)
        pfc_add_running(direction, now_ns, row);
}

void direction_count(struct link_direction *direction, const struct packet *packet, bool accepted) {
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

static void deliver(struct logical_process *lp, struct link_direction *channel, struct packet *packet) {
    struct link_direction *direction = whole_of(channel);
    if (direction->tapped && direction->arrivals)
        captures_take(lp, direction->arrivals, packet, false);
    if (packet->stage == STAGE_PAUSE) {
        pfc_take(lp, direction, packet);
        return;
    }
    packet->direction = direction;
    if (direction->far_end == TO_OUTSIDE) {
        direction->io->kind->send(lp, direction->io, packet);
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
        list_append(lp->ready, packet);
        break;
    case TO_NOWHERE:
        direction->egress->statistics.no_port_drops++;
        count_handed(direction->egress, packet);
        packet_free(&lp->pool, packet);
        break;
    default:
        direction->egress->statistics.packet_ins++;
        count_handed(direction->egress, packet);
        host_event_send(direction->egress, GB_HOST_EVENT_PACKET_IN, 0, packet->view.data, packet->view.length);
        packet_free(&lp->pool, packet);
    }
}

static void arrive(struct logical_process *lp, void *owner) {
    struct link_direction *direction = owner;
    struct packet *packet;
    while ((packet = timed_pop(&lp->timers, &direction->flight, &direction->arrival, lp->now_ns)))
        deliver(lp, direction, packet);
}

void direction_prefetch(const struct link_direction *direction, const struct logical_process *lp) {
    gb_prefetch_line(&direction->egress);
    if (direction->peer_lp == lp)
        gb_prefetch_line(&direction->arrival);
}

static void prefetch_packet(const struct packet *packet) {
    gb_prefetch_lines(packet, gb_lines_of(sizeof *packet));
}

static void prefetch_arrival(const void *owner, unsigned step) {
    const struct link_direction *channel = owner, *direction = whole_of(channel), *to = direction->lately_to;
    const struct packet *packet = channel->flight.first;
    if (!packet)
        return;
    if (step == 0) {
        gb_prefetch_line(&direction->peer_lp);
        gb_prefetch_line(&direction->packets);
        prefetch_packet(packet);
    } else if (direction->far_end == TO_PIPELINE) {
        if (step == 1 && to)
            direction_prefetch(to, direction->peer_lp);
        else if (step == 2 && to)
            gb_prefetch_line(&direction->to->ports[to->egress_port]);
        pipeline_prefetch(direction, packet, step);
    } else if (direction->far_end == TO_OUTSIDE && step <= 2) {
        gb_prefetch_line((const char *)direction->io + (step - 1) * GB_LINE_BYTES);
    }
    if (step == 1) {
        gb_prefetch_line(packet->view.data);
        if (packet->next)
            prefetch_packet(packet->next);
    }
}

/* Of the largest priority. */
static const struct packet *first_waiting(const struct packet_queue *queue) {
    return queue->occupied ? queue->lists[31 - __builtin_clz(queue->occupied)].first : NULL;
}

static void prefetch_departure(const void *owner, unsigned step) {
    const struct link_direction *direction = owner;
    if (step == 0) {
        direction_prefetch(direction, direction->lp);
        return;
    }
    const struct packet *packet = first_waiting(&direction->queue);
    const struct device *device = direction->egress;
    if (packet && step == 1)
        prefetch_packet(packet);
    else if (packet && step == 2 && packet->view.pass)
        gb_prefetch_lines(packet->view.pass, gb_lines_of(sizeof *packet->view.pass));
    if (device && step == 2)
        gb_prefetch_line(device);
    else if (device && step == 3 && device->state)
        gb_prefetch_lines(device->state, 2);
}

static void propagate(struct logical_process *lp, struct link_direction *direction, struct packet *packet,
                      uint64_t arrival_ns) {
    /* At once, unless there are other events of this time. */
    if (arrival_ns == lp->now_ns && direction->peer_lp == lp && lp_alone_now(lp))
        deliver(lp, direction, packet);
    else if (direction->peer_lp != lp && lp->side)
        lookahead_cross(lp, direction, packet, arrival_ns);
    else
        timed_put(&direction->peer_lp->timers, &direction->flight, &direction->arrival, packet, arrival_ns);
}

/* When a packet that is sent by then will be at the far end. */
static uint64_t arrival_time(struct link_direction *direction, uint64_t sent_ns) {
    const struct gb_link_model *model = direction->parent->model;
    uint64_t arrival_ns = sent_ns + model->delay_ns;
    if (model->jitter_ns) {
        uint64_t drawn = random_next(&direction->parent->jitter_state);
        arrival_ns -= model->jitter_ns;
        arrival_ns += (uint64_t)((unsigned __int128)drawn * (2 * model->jitter_ns + 1) >> 64);
    }
    if (direction->last_arrival_ns < arrival_ns)
        direction->last_arrival_ns = arrival_ns;
    return model->reorder ? arrival_ns : direction->last_arrival_ns;
}

static void begin(struct logical_process *lp, struct link_direction *parent, const struct packet *packet, bool lost) {
    if (parent->tapped && parent->departures)
        captures_take(lp, parent->departures, packet, lost);
}

static void lose(struct logical_process *lp, struct link_direction *direction, struct packet *packet) {
    begin(lp, direction->parent, packet, true);
    direction->parent->statistics.losses++;
    direction->parent->statistics.lost_bytes += packet->view.length;
    if (direction->parent->classes)
        classes_lost(direction->parent, packet);
    packet_free(&lp->pool, packet);
}

/* How many bits arrive right before the next wrong one: a geometric distribution. */
static double bits_until_error(struct link_direction *parent) {
    double uniform = ((double)(random_next(&parent->error_state) >> 11) + 1) * 0x1p-53;
    return floor(log(uniform) / log1p(-parent->model->bit_error_rate));
}

/* Whether a bit of the frame arrives wrong. One draw for each error, not for each frame. */
static bool has_bit_error(struct link_direction *parent, uint32_t length) {
    double bits = 8.0 * length;
    if (parent->bits_to_error < 0)
        parent->bits_to_error = bits_until_error(parent);
    bool wrong = parent->bits_to_error < bits;
    parent->bits_to_error = wrong ? -1 : parent->bits_to_error - bits;
    return wrong;
}

/* When a frame whose transmission begins now has been sent. What is left of a nanosecond is carried over to the next
 * one that follows at once: rates are exact, however short the frames. */
static uint64_t sending_ends(struct link_direction *direction, uint64_t length, uint64_t now_ns) {
    uint64_t rate_bps = direction->parent->model->rate_bps;
    uint64_t bit_ns = length * UINT64_C(8000000000);
    if (direction->busy_until_ns == now_ns)
        bit_ns += direction->busy_remainder;
    direction->busy_remainder = bit_ns % rate_bps;
    return now_ns + bit_ns / rate_bps;
}

static void transmit(struct logical_process *lp, struct link_direction *direction, struct packet *packet) {
    struct link_direction *parent = direction->parent;
    const struct gb_link_model *model = parent->model;
    uint64_t sent_ns = lp->now_ns;
    if (parent->classes)
        classes_started(parent, packet);
    if (model->rate_bps) {
        sent_ns = direction->busy_until_ns = sending_ends(direction, packet->view.length, sent_ns);
        direction->backlog_bytes += packet->view.length;
    }
    if (parent->cut) {
        lose(lp, direction, packet);
        return;
    }
    uint64_t arrival_ns = arrival_time(direction, sent_ns);
    if (model->bit_error_rate > 0 && has_bit_error(parent, packet->view.length)) {
        lose(lp, direction, packet);
        return;
    }
    if (model->loss_threshold | model->duplicate_threshold) {
        /* Two draws per packet, whatever they are used for: so decisions depend on seed and order alone. */
        uint64_t loss = random_next(&parent->random_state);
        uint64_t duplication = random_next(&parent->random_state);
        if (loss < model->loss_threshold) {
            lose(lp, direction, packet);
            return;
        }
        if (duplication < model->duplicate_threshold) {
            begin(lp, parent, packet, false);
            struct packet *duplicate = packet_copy_frame(&lp->pool, packet, lp->pool.headroom_bytes);
            propagate(lp, direction, packet, arrival_ns);
            if (duplicate) {
                duplicate->duplicate = true;
                propagate(lp, direction, duplicate, arrival_ns);
            }
            return;
        }
    }
    begin(lp, parent, packet, false);
    propagate(lp, direction, packet, arrival_ns);
}

void direction_send_ahead(struct logical_process *lp, struct link_direction *direction, struct packet *frame) {
    uint64_t sent_ns = lp->now_ns;
    if (direction->model->rate_bps) {
        uint64_t begin_ns = direction->busy_until_ns > sent_ns ? direction->busy_until_ns : sent_ns;
        sent_ns = direction->busy_until_ns = sending_ends(direction, frame->view.length, begin_ns);
        direction->backlog_bytes += frame->view.length;
    }
    begin(lp, direction, frame, false);
    propagate(lp, direction, frame, arrival_time(direction, sent_ns));
}

static void depart(struct logical_process *lp, struct link_direction *direction, struct packet *packet) {
    if (!direction->egress || pipeline_egress(lp, direction, packet))
        transmit(lp, direction, packet);
}

/* From then on, or from later on, a channel that takes turns may begin to send. */
static uint64_t turn_from(const struct link_direction *channel, uint64_t from_ns) {
    const struct gb_link_model *model = channel->parent->model;
    if (!model->turn_ns || !channel->channel)
        return from_ns;
    uint64_t others = channel->parent->more_channels, turn = from_ns / model->turn_ns;
    uint64_t ahead = (channel->channel - 1 + others - (turn + model->first_turn) % others) % others;
    if (ahead == 0) {
        if (from_ns % model->turn_ns < model->turn_ns - model->guard_ns)
            return from_ns;
        ahead = others;
    }
    return (turn + ahead) * model->turn_ns;
}

static bool idle(const struct logical_process *lp, const struct link_direction *direction) {
    return direction->busy_until_ns <= lp->now_ns && turn_from(direction, lp->now_ns) == lp->now_ns &&
           !(direction->io && direction->io->blocked);
}

/* Whether anything waits in the queue that PFC lets it send, or on the host's NIC. */
static bool waits_in_queue(const struct link_direction *direction) {
    return direction->queue.occupied & ~(uint32_t)direction->paused;
}

static bool waits(const struct link_direction *direction) {
    return waits_in_queue(direction) || nic_ready(direction->nic);
}

/* What is behind a blocked port, or paused, wakes up by itself. */
static void depart_when_idle(struct logical_process *lp, struct link_direction *direction) {
    if (!waits(direction) || timer_armed(&direction->departure))
        return;
    bool busy = direction->busy_until_ns > lp->now_ns;
    uint64_t due_ns = turn_from(direction, busy ? direction->busy_until_ns : lp->now_ns);
    if (due_ns > lp->now_ns)
        timer_arm(&lp->timers, &direction->departure, due_ns);
}

/* Called when the transmitter turns to the next waiting packet: what it sent before took until now. Who takes turns
 * cannot be held to a rate. */
static void count_backlog(struct logical_process *lp, struct link_direction *direction) {
    if (direction->parent->model->turn_ns)
        return;
    if (direction->backlog_start_ns) {
        uint64_t taken_ns = lp->clock_ns - direction->backlog_start_ns;
        if (taken_ns < GB_BACKLOG_NS)
            return;
        direction->parent->statistics.backlogged_bytes += direction->backlog_bytes;
        direction->parent->statistics.backlogged_ns += taken_ns;
    }
    direction->backlog_start_ns = lp->clock_ns;
    direction->backlog_bytes = 0;
}

/* From the queue, and from the host's NIC: by turns, if both have some. */
static struct packet *take_next(struct logical_process *lp, struct link_direction *direction) {
    struct packet *packet = NULL;
    if (nic_ready(direction->nic) && (direction->nic_next || !waits_in_queue(direction)))
        packet = nic_next(lp, direction->nic);
    direction->nic_next = !packet;
    return packet ? packet : queue_pop(&direction->queue, direction->paused);
}

static void depart_waiting(struct logical_process *lp, struct link_direction *direction) {
    struct packet *next;
    while (idle(lp, direction) && (next = take_next(lp, direction))) {
        struct buffered buffered = pfc_let_go(next);
        count_backlog(lp, direction);
        depart(lp, direction, next);
        pfc_release(lp, buffered);
    }
    if (!waits(direction))
        direction->backlog_start_ns = 0;
    depart_when_idle(lp, direction);
}

static void departure_due(struct logical_process *lp, void *direction) {
    depart_waiting(lp, direction);
}

void direction_resume(struct logical_process *lp, struct link_direction *direction) {
    depart_waiting(lp, direction);
}

void direction_offer(struct logical_process *lp, struct link_direction *parent, struct packet *packet) {
    struct link_direction *direction = parent;
    uint32_t priority = 0, waiting = queue_length(&direction->queue, 0);
    parent->entered_bytes += packet->view.length;
    if (direction->egress) {
        struct gb_standard_metadata *std = &packet->view.pass->std;
        priority = (uint32_t)std->priority;
        direction = channel_of(parent, priority);
        waiting = queue_length(&direction->queue, priority);
        std->enq_timestamp = (uint32_t)device_time_us(direction->egress, lp->now_ns);
        std->enq_qdepth = waiting & GB_QDEPTH_MASK;
    } else {
        if (parent->has_pfc)
            waiting = direction->queue.lists[priority = pfc_priority(packet)].count;
        if (parent->classes)
            classes_entered(parent, packet);
    }
    packet->priority = (uint8_t)priority;
    if (!waits_in_queue(direction) && !direction_paused(direction, priority) && idle(lp, direction)) {
        depart(lp, direction, packet);
        return;
    }
    if (waiting >= parent->model->queue_packets) {
        parent->statistics.queue_drops++;
        parent->statistics.queue_drop_bytes += packet->view.length;
        if (parent->classes)
            classes_queue_drop(parent, packet);
        packet_free(&lp->pool, packet);
        return;
    }
    queue_append(&direction->queue, priority, packet);
    depart_when_idle(lp, direction);
    if (packet->came_by)
        pfc_hold(lp, packet);
}
