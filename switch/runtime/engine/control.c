/* What the control plane does to an engine that is built: links, programs, replication, frames, statistics. */
#include <errno.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/ports/pfc.h"
#include "engine/ports/socket.h"
#include "engine/random.h"
#include "state/state.h"

/* ---- Links ---- */

/* It gets another one: a stretch of backlog is counted at one rate. */
static void forget_rate(struct link_direction *direction) {
    direction->busy_remainder = 0;
    direction->backlog_start_ns = 0;
}

int gb_engine_set_link(struct gb_engine *engine, uint64_t device_id, uint32_t port, uint32_t outwards,
                       const struct gb_link_model *model) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    struct link_direction *direction = NULL;
    if (device && port < GB_MAX_PORTS)
        direction = outwards ? device->ports[port].out : device->ports[port].in;
    int outcome = device ? -EINVAL : -ESRCH;
    if (direction && direction->reported) {
        struct gb_link_model wanted = *model;
        wanted.channels = direction->model->channels;
        if (model->rate_bps != direction->model->rate_bps) {
            forget_rate(direction);
            for (uint32_t i = 0; i < direction->more_channels; i++)
                forget_rate(direction->channels[i]);
        }
        if (model->bit_error_rate != direction->model->bit_error_rate)
            direction->bits_to_error = -1;
        bool had_memory = direction_set_model(engine, direction, &wanted);
        engine->has_pfc |= model->pfc_xoff_bytes > 0;
        bool to_switch = direction->back && direction->far_end == TO_PIPELINE;
        outcome = had_memory && (!to_switch || pfc_prepare(direction)) ? 0 : -ENOMEM;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

/* ---- Programs and replication ---- */

/* Packets of any LP may come to run the program. */
static void make_room(struct gb_engine *engine, const struct gb_program *program) {
    uint32_t headroom_bytes = program->max_header_bytes;
    if (headroom_bytes > MOST_HEADROOM_BYTES)
        headroom_bytes = MOST_HEADROOM_BYTES;
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        struct packet_pool *pool = &engine->lps[i].pool;
        if (program->phv_words > pool->phv_words)
            pool->phv_words = program->phv_words;
        if (headroom_bytes > pool->headroom_bytes)
            pool->headroom_bytes = headroom_bytes;
    }
}

int gb_engine_load(struct gb_engine *engine, uint64_t device_id, struct gb_switch *state) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    if (!device) {
        outcome = -ESRCH;
    } else {
        pipeline_abandon(device);
        if (device->state)
            gb_switch_watch_ports(device->state, NULL);
        replica_map_clear(&device->groups);
        replica_map_clear(&device->sessions);
        if (state) {
            state->engine = device;
            state->drop_port = device->drop_port;
            state->digest = host_event_digest;
            state->log = host_event_log;
            /* Switches that run the same program draw different numbers. */
            uint64_t seed = state->random_state + device_id + device->seed;
            state->random_state = random_next(&seed);
            gb_switch_watch_ports(state, device->ports_down);
            make_room(engine, state->program);
        }
        device->state = state;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_multicast_group_set(struct gb_engine *engine, uint64_t device_id, uint32_t group,
                                  const struct gb_replica *replicas, uint32_t count) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    /* Group 0 is no multicast. */
    int outcome = !device ? -ESRCH : -EINVAL;
    if (device && group != 0)
        outcome = replica_map_set(&device->groups, group, replicas, count, 0, 0);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_multicast_group_delete(struct gb_engine *engine, uint64_t device_id, uint32_t group) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    int outcome = device ? replica_map_delete(&device->groups, group) : -ESRCH;
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_clone_session_set(struct gb_engine *engine, uint64_t device_id, uint32_t session,
                                const struct gb_replica *replicas, uint32_t count, uint32_t truncate_bytes,
                                uint32_t class_of_service) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    int outcome = -ESRCH;
    if (device)
        outcome = replica_map_set(&device->sessions, session, replicas, count, truncate_bytes, class_of_service);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_clone_session_delete(struct gb_engine *engine, uint64_t device_id, uint32_t session) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    int outcome = device ? replica_map_delete(&device->sessions, session) : -ESRCH;
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_listen(struct gb_engine *engine, uint64_t device_id, uint32_t kinds) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    if (device)
        device->listens = kinds;
    engine_unlock(&engine->lock);
    return device ? 0 : -ESRCH;
}

/* ---- Frames ---- */

static int offer_frame(struct gb_engine *engine, struct link_direction *in, const uint8_t *frame, uint32_t length) {
    struct packet_pool *pool = &in->lp->pool;
    struct packet *packet = packet_from_bytes(pool, frame, length, pool->headroom_bytes);
    if (!packet)
        return -ENOMEM;
    engine_catch_up(engine);
    direction_offer(in->lp, in, packet);
    engine_wake(engine);
    return 0;
}

int gb_engine_inject(struct gb_engine *engine, uint64_t device_id, uint32_t port, const uint8_t *frame,
                     uint32_t length) {
    if (length > GB_MAX_FRAME_BYTES)
        return -EMSGSIZE;
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    if (!device)
        outcome = -ESRCH;
    else if (!memory || memory->listener != DRAIN)
        outcome = -EINVAL;
    else
        outcome = offer_frame(engine, memory->io.in, frame, length);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_packet_out(struct gb_engine *engine, uint64_t device_id, const uint8_t *frame, uint32_t length) {
    if (length > GB_MAX_FRAME_BYTES)
        return -EMSGSIZE;
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    if (!device)
        outcome = -ESRCH;
    else if (device->cpu_port == GB_NO_PORT)
        outcome = -EINVAL;
    else
        outcome = offer_frame(engine, device->ports[device->cpu_port].in, frame, length);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_drain(struct gb_engine *engine, struct gb_drained *drained, uint8_t *data) {
    engine_lock_control(&engine->lock);
    struct packet *packet = list_pop(&engine->drained);
    if (packet) {
        drained->time_ns = packet->due_ns;
        drained->device_id = packet->device->device_id;
        drained->port = packet->port;
        drained->length = packet->view.length;
        memcpy(data, packet->view.data, packet->view.length);
        packet->device->lp->arrived_packets--;
        packet_free(&packet->device->lp->pool, packet);
    }
    engine_unlock(&engine->lock);
    return packet != NULL;
}

/* ---- Statistics ---- */

uint32_t gb_engine_link_statistics(struct gb_engine *engine, struct gb_link_statistics *rows, uint32_t capacity) {
    uint32_t count = 0;
    engine_lock_control(&engine->lock);
    engine_catch_up(engine);
    engine_flush(engine);
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        const struct link_direction *direction = engine->directions[i];
        if (!direction->reported)
            continue;
        if (count < capacity)
            direction_report(direction, engine->now_ns, &rows[count]);
        count++;
    }
    engine_unlock(&engine->lock);
    return count;
}

uint32_t gb_engine_deadlock(struct gb_engine *engine, struct gb_pause *circle, uint32_t capacity) {
    engine_lock_control(&engine->lock);
    uint32_t count = pfc_deadlock(engine, circle, capacity);
    engine_unlock(&engine->lock);
    return count;
}

uint32_t gb_engine_interface_statistics(struct gb_engine *engine, struct gb_interface_statistics *rows,
                                        uint32_t capacity) {
    uint32_t count = 0;
    engine_lock_control(&engine->lock);
    for (uint32_t i = 0; i < engine->io_count; i++) {
        struct interface *interface = interface_of(engine->ios[i]);
        if (!interface)
            continue;
        if (count < capacity) {
            interface_count_socket_drops(interface);
            rows[count] = interface->statistics;
            const struct gb_link_statistics *in = &interface->io.in->statistics;
            rows[count].device_id = in->device_id;
            rows[count].port = in->port;
            rows[count].outwards = in->outwards;
        }
        count++;
    }
    engine_unlock(&engine->lock);
    return count;
}

int gb_engine_device_statistics(struct gb_engine *engine, uint64_t device_id,
                                struct gb_device_statistics *statistics) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    if (device)
        *statistics = device->statistics;
    engine_unlock(&engine->lock);
    return device ? 0 : -ESRCH;
}

void gb_engine_statistics(struct gb_engine *engine, struct gb_engine_statistics *statistics) {
    engine_lock_control(&engine->lock);
    lps_statistics(engine, statistics);
    statistics->live_packets -= engine->idle_packets;
    engine_unlock(&engine->lock);
}
