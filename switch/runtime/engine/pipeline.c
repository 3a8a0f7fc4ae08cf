/* v1model's pipeline around a P4 program, in the order of BMv2's simple_switch.
 *
 *   parse -> ingress -> clone, resubmit | multicast | drop | unicast -> traffic manager
 *         -> egress -> clone, drop | deparse -> recirculate | port
 *
 * Where simple_switch resets more than its documentation says, the documentation (and v1model.p4) wins: clones,
 * resubmitted and recirculated packets keep ingress_port.
 */
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "engine/internal.h"
#include "engine/ports/classes.h"
#include "engine/ports/pfc.h"
#include "state/state.h"

/* Egress must not start with the drop port. */
static uint64_t no_egress_spec(const struct device *device) {
    return device->drop_port == 0;
}

static struct gb_recent *recents_of(const struct packet *packet) {
    return packet->direction ? packet->direction->recents : packet->device->state->own_recents;
}

static void drop(struct logical_process *lp, struct packet *packet, uint64_t *counter) {
    (*counter)++;
    if (packet->device->classes)
        packet->device->classes->ended[packet->class_number]++;
    packet_free(&lp->pool, packet);
}

/* Clones and copies of the packet that go on, and those of them that there was no memory for. */
static void count_copies(struct device *device, const struct packet *packet, uint64_t *counter, uint64_t count) {
    *counter += count;
    if (device->classes)
        device->classes->copied[packet->class_number] += count;
}

static void count_failed_copy(struct device *device, const struct packet *packet) {
    device->statistics.buffer_drops++;
    if (device->classes)
        device->classes->ended[packet->class_number]++;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Standard metadata at the beginning of a pass. */
static void begin_packet_context(struct packet *packet, uint64_t ingress_port, uint64_t ingress_us,
                       enum gb_instance_type type) {
    struct gb_standard_metadata *std = &packet->view.pass->std;
    gb_clear((uint64_t *)std, sizeof *std / sizeof(uint64_t));
    std->ingress_port = ingress_port;
    std->ingress_global_timestamp = ingress_us;
    std->packet_length = packet->view.length;
    std->instance_type = type;
}

/* Of the user metadata keep only the field list's fields, with the values of `from`. */
static void preserve(const struct gb_program *program, uint32_t field_list, struct packet *packet,
                     const struct gb_packet *from) {
    uint64_t type = packet->view.pass->std.instance_type;
    program->reset_metadata(&packet->view);
    if (field_list)
        program->copy_field_list(field_list, &packet->view, from);
    packet->view.pass->std.instance_type = type;
    packet->view.pass->std.packet_length = packet->view.length;
}

static void enter_again(struct logical_process *lp, struct packet *packet, enum stage stage) {
    packet->stage = stage;
    list_append(lp->ready, packet);
}

static void to_traffic_manager(struct logical_process *lp, struct packet *packet, uint64_t port, bool from_egress) {
    if (!from_egress) {
        pipeline_enqueue(lp, packet, port);
        return;
    }
    /* By way of the ready list: a program that clones in every egress must not recurse. */
    packet->port = (uint32_t)port;
    enter_again(lp, packet, STAGE_ENQUEUE);
}

/* Takes the packet. */
static void replicate(struct logical_process *lp, struct packet *packet, const struct replica_set *set,
                      bool from_egress) {
    struct device *device = packet->device;
    count_copies(device, packet, &device->statistics.copied, set->count - 1);
    for (uint32_t i = 0; i + 1 < set->count; i++) {
        struct packet *copy = packet_copy_parsed(&lp->pool, packet, device->state->program);
        if (!copy) {
            count_failed_copy(device, packet);
            continue;
        }
        copy->view.pass->std.egress_rid = set->replicas[i].instance;
        to_traffic_manager(lp, copy, set->replicas[i].egress_port, from_egress);
    }
    packet->view.pass->std.egress_rid = set->replicas[set->count - 1].instance;
    to_traffic_manager(lp, packet, set->replicas[set->count - 1].egress_port, from_egress);
}

static void apply_session(struct packet *clone, const struct replica_set *session) {
    clone->truncate_bytes = session->truncate_bytes;
    if (session->class_of_service)
        clone->view.pass->std.priority = session->class_of_service;
}

/* The frame as it came to ingress, parsed once more; then straight to egress. */
static void clone_ingress(struct logical_process *lp, const struct packet *packet) {
    struct device *device = packet->device;
    struct gb_switch *state = device->state;
    const struct gb_program *program = state->program;
    const struct replica_set *session = replica_map_find(&device->sessions, packet->view.pass->requests.clone_session);
    if (!session || session->count == 0) {
        device->statistics.no_session_clones++;
        return;
    }
    count_copies(device, packet, &device->statistics.cloned, 1);
    struct packet *clone = packet_copy_frame(&lp->pool, packet, program->max_header_bytes);
    if (!clone || !(clone->view.pass = context_take(&lp->pool, program->phv_words))) {
        count_failed_copy(device, packet);
        if (clone)
            packet_free(&lp->pool, clone);
        return;
    }
    begin_packet_context(clone, packet->view.pass->std.ingress_port, packet->view.pass->std.ingress_global_timestamp,
               GB_INSTANCE_INGRESS_CLONE);
    memset(&clone->view.pass->requests, 0, sizeof clone->view.pass->requests);
    program->parse(state, &clone->view);
    preserve(program, packet->view.pass->requests.clone_field_list, clone, &packet->view);
    apply_session(clone, session);
    replicate(lp, clone, session, false);
}

/* The packet as egress left it, headers included; then egress again. */
static void clone_egress(struct logical_process *lp, const struct packet *packet) {
    struct device *device = packet->device;
    const struct gb_program *program = device->state->program;
    const struct replica_set *session = replica_map_find(&device->sessions, packet->view.pass->requests.clone_session);
    if (!session || session->count == 0) {
        device->statistics.no_session_clones++;
        return;
    }
    count_copies(device, packet, &device->statistics.cloned, 1);
    struct packet *clone = packet_copy_parsed(&lp->pool, packet, program);
    if (!clone) {
        count_failed_copy(device, packet);
        return;
    }
    begin_packet_context(clone, packet->view.pass->std.ingress_port, packet->view.pass->std.ingress_global_timestamp,
               GB_INSTANCE_EGRESS_CLONE);
    preserve(program, packet->view.pass->requests.clone_field_list, clone, &packet->view);
    apply_session(clone, session);
    replicate(lp, clone, session, true);
}

/* Back to the parser, with the frame that packet->view has now. */
static void reenter_ingress(struct logical_process *lp, struct packet *packet, uint32_t field_list,
                       enum gb_instance_type type) {
    struct device *device = packet->device;
    const struct gb_program *program = device->state->program;
    struct gb_packet old = packet->view;
    packet->view.pass = context_take(&lp->pool, program->phv_words);
    if (packet->view.pass) {
        uint64_t ingress_us = type == GB_INSTANCE_RESUBMITTED ? old.pass->std.ingress_global_timestamp
                                                              : device_time_us(device, lp->now_ns);
        begin_packet_context(packet, old.pass->std.ingress_port, ingress_us, type);
        preserve(program, field_list, packet, &old);
        packet->view.keep_metadata = 1;
        packet->truncate_bytes = UINT32_MAX;
        enter_again(lp, packet, STAGE_PARSE_AGAIN);
    } else {
        drop(lp, packet, &device->statistics.buffer_drops);
    }
    context_give(&lp->pool, old.pass);
}

void pipeline_enqueue(struct logical_process *lp, struct packet *packet, uint64_t port) {
    struct device *device = packet->device;
    struct link_direction *out = port < GB_MAX_PORTS ? device->ports[port].out : NULL;
    if (packet->view.pass->std.priority >= device->priorities) {
        drop(lp, packet, &device->statistics.priority_drops);
        return;
    }
    if (!out) {
        /* Egress runs all the same, and may clone or recirculate: programs use ports that do not exist for that. */
        out = device->nowhere;
        out->egress_port = (uint32_t)port;
    } else if (packet->direction && packet->direction->lately_to != out) {
        packet->direction->lately_to = out;
    }
    direction_offer(lp, out, packet);
}

static void drop_by_program(struct logical_process *lp, struct packet *packet, struct device *device, uint64_t *count) {
    struct gb_switch *state = device->state;
    state->drop_counts[state->drop_site]++;
    device->statistics.no_entry_drops += state->drop_site & 1;
    drop(lp, packet, count);
}

static void after_ingress(struct logical_process *lp, struct packet *packet) {
    struct device *device = packet->device;
    struct gb_packet *view = &packet->view;
    if (view->pass->requests.clone)
        clone_ingress(lp, packet);
    if (view->pass->requests.truncate)
        packet->truncate_bytes = smaller(packet->truncate_bytes, view->pass->requests.truncate_length_bytes);
    if (view->pass->requests.resubmit) {
        device->statistics.resubmitted++;
        reenter_ingress(lp, packet, view->pass->requests.resubmit_field_list, GB_INSTANCE_RESUBMITTED);
    } else if (view->pass->std.mcast_grp) {
        const struct replica_set *group = replica_map_find(&device->groups, view->pass->std.mcast_grp);
        if (!group || group->count == 0) {
            drop(lp, packet, &device->statistics.no_group_drops);
            return;
        }
        view->pass->std.instance_type = GB_INSTANCE_REPLICATED;
        device->statistics.replicated += group->count;
        replicate(lp, packet, group, false);
    } else if (view->pass->std.egress_spec == device->drop_port) {
        drop_by_program(lp, packet, device, &device->statistics.ingress_drops);
    } else {
        view->pass->std.instance_type = GB_INSTANCE_NORMAL;
        pipeline_enqueue(lp, packet, view->pass->std.egress_spec);
    }
}

void pipeline_prefetch(const struct link_direction *direction, const struct packet *packet, unsigned step) {
    enum { DEVICE = 1, STATE, TABLES, ENTRIES };
    const struct device *device = direction->to;
    if (step == DEVICE) {
        gb_prefetch_line(device);
        return;
    }
    const struct gb_switch *state = device->state;
    if (!state)
        return;
    if (step == STATE)
        gb_prefetch_lines(state, 2);
    for (uint32_t i = 0; step >= TABLES && i < GB_RECENTS && state->recent_tables[i]; i++) {
        const struct gb_table *table = state->recent_tables[i];
        const struct gb_recent *recent = &direction->recents[i];
        if (step == TABLES && recent->entry)
            gb_prefetch_line(table);
        else if (recent->entry && recent->version == table->version)
            gb_prefetch_line(recent->entry);
    }
    if (step == ENTRIES) {
        uint32_t bytes = smaller(packet->view.length, state->program->max_header_bytes);
        gb_prefetch_lines(packet->view.data, gb_lines_of(bytes));
    }
}

void pipeline_begin(struct logical_process *lp, struct packet *packet) {
    struct device *device = packet->device;
    struct gb_switch *state = device->state;
    if (!state) {
        drop(lp, packet, &device->statistics.no_program_drops);
        return;
    }
    const struct gb_program *program = state->program;
    struct packet *roomy = packet_with_headroom(&lp->pool, packet, program->max_header_bytes);
    if (!roomy) {
        drop(lp, packet, &device->statistics.buffer_drops);
        return;
    }
    packet = roomy;
    if (packet->stage == STAGE_PARSE) {
        packet->view.pass = context_take(&lp->pool, program->phv_words);
        if (!packet->view.pass) {
            drop(lp, packet, &device->statistics.buffer_drops);
            return;
        }
        begin_packet_context(packet, packet->port, device_time_us(device, lp->now_ns), GB_INSTANCE_NORMAL);
        packet->view.keep_metadata = 0;
        device->statistics.received++;
    }
    memset(&packet->view.pass->requests, 0, sizeof packet->view.pass->requests);
    state->recents = recents_of(packet);
    program->parse(state, &packet->view);
    state->drop_site = 0;
    program->ingress(state, &packet->view);
    after_ingress(lp, packet);
}

bool pipeline_egress(struct logical_process *lp, struct link_direction *direction, struct packet *packet) {
    struct device *device = direction->egress;
    struct gb_switch *state = device->state;
    const struct gb_program *program = state->program;
    struct gb_packet *view = &packet->view;
    struct gb_standard_metadata *std = &view->pass->std;
    std->egress_global_timestamp = device_time_us(device, lp->now_ns);
    std->deq_timedelta = (uint32_t)(std->egress_global_timestamp - std->enq_timestamp);
    std->deq_qdepth = queue_length(&direction->queue, packet->priority) & GB_QDEPTH_MASK;
    std->egress_port = direction->egress_port;
    std->egress_spec = no_egress_spec(device);
    memset(&view->pass->requests, 0, sizeof view->pass->requests);
    state->drop_site = 0;
    state->recents = recents_of(packet);
    program->egress(state, view);

    struct gb_requests requests = view->pass->requests;
    if (requests.clone)
        clone_egress(lp, packet);
    if (requests.truncate)
        packet->truncate_bytes = smaller(packet->truncate_bytes, requests.truncate_length_bytes);
    if (std->egress_spec == device->drop_port) {
        drop_by_program(lp, packet, device, &device->statistics.egress_drops);
        return false;
    }
    program->deparse(state, view);
    packet_deparsed(packet);
    if (view->length == 0 || view->length > GB_MAX_FRAME_BYTES) {
        drop(lp, packet, &device->statistics.buffer_drops);
        return false;
    }
    view->length = smaller(view->length, packet->truncate_bytes);
    if (requests.recirculate) {
        device->statistics.recirculated++;
        reenter_ingress(lp, packet, requests.recirculate_field_list, GB_INSTANCE_RECIRCULATED);
        return false;
    }
    context_give(&lp->pool, view->pass);
    view->pass = NULL;
    packet->truncate_bytes = UINT32_MAX;
    if (device->classes)
        classes_left(device, packet);
    return true;
}

static void abandon(struct device *device, struct packet_list *list) {
    struct packet_list kept = {0};
    struct packet *packet;
    while ((packet = list_pop(list))) {
        if (packet->device == device && packet->view.pass) {
            struct buffered buffered = pfc_let_go(packet);
            drop(device->lp, packet, &device->statistics.swap_drops);
            pfc_release(device->lp, buffered);
        } else {
            list_append(&kept, packet);
        }
    }
    *list = kept;
}

static void abandon_queue(struct device *device, struct packet_queue *queue) {
    queue->count = 0;
    for (uint32_t priority = 0; priority < GB_PRIORITIES; priority++) {
        abandon(device, &queue->lists[priority]);
        queue->count += queue->lists[priority].count;
        if (!queue->lists[priority].first)
            queue->occupied &= ~(1u << priority);
    }
}

void pipeline_abandon(struct device *device) {
    abandon(device, device->lp->ready);
    for (uint32_t port = 0; port < GB_MAX_PORTS; port++) {
        struct link_direction *out = device->ports[port].out;
        if (!out)
            continue;
        abandon_queue(device, &out->queue);
        for (uint32_t i = 0; i < out->more_channels; i++)
            abandon_queue(device, &out->channels[i]->queue);
    }
}
