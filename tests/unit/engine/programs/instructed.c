/* A program that does what the frame says, to test the engine without a compiler.
 *
 * A frame is a run of 8-byte instructions, one for each pass through a pipeline, and a payload. A pass takes the
 * first instruction off. instructed.py writes these frames and reads the reports.
 */
#include <string.h>

#include "state/state.h"

enum { FORWARD, MULTICAST, RESUBMIT, RESUBMIT_FORGETTING, CLONE, TRUNCATE, DIGEST, LOG };
enum { PASS, DROP, RECIRCULATE, CLONE_EGRESS, REPORT, TRUNCATE_EGRESS, KEEP, GROW, RECIRCULATE_FORGETTING };
enum { INSTRUCTION_BYTES = 8, REPORT_BYTES = 18 * 8, GROWTH_BYTES = 1024, KEEPS_MARK = 1 };
enum { NO_PORT_SPEC = 254, DROP_SPEC = 255 };            /* ports that stand for others */

struct phv {
    uint64_t valid, reported, grown;
    uint8_t instruction[8];                             /* ingress, argument, port, egress, argument, priority */
    struct { uint64_t mark, mark_in_parser; } meta;     /* field list 1 is the mark */
};

static struct phv *phv_of(struct gb_packet *packet) { return (struct phv *)packet->pass->phv; }

static void parse(struct gb_switch *sw, struct gb_packet *packet) {
    struct phv *phv = phv_of(packet);
    memset(phv, 0, packet->keep_metadata ? offsetof(struct phv, meta) : sizeof *phv);
    phv->meta.mark_in_parser = phv->meta.mark;
    phv->valid = packet->length >= INSTRUCTION_BYTES;
    packet->pass->std.parser_error = !phv->valid;
    packet->payload_offset = phv->valid ? INSTRUCTION_BYTES : 0;
    memcpy(phv->instruction, packet->data, packet->payload_offset);
}

static void ingress(struct gb_switch *sw, struct gb_packet *packet) {
    struct phv *phv = phv_of(packet);
    struct gb_standard_metadata *std = &packet->pass->std;
    struct gb_requests *requests = &packet->pass->requests;
    uint8_t argument = phv->instruction[1], port = phv->instruction[2];
    uint64_t words[2] = {argument, std->ingress_port};
    /* A program may declare wider port fields than v1model.p4 does. */
    std->egress_spec = !phv->valid || port == DROP_SPEC ? sw->drop_port : port == NO_PORT_SPEC ? UINT32_MAX : port;
    std->priority = phv->instruction[5];
    switch (phv->instruction[0]) {
    case MULTICAST:
        std->mcast_grp = argument;
        break;
    case RESUBMIT:
    case RESUBMIT_FORGETTING:
        if (std->instance_type == GB_INSTANCE_RESUBMITTED)
            break;
        phv->meta.mark = argument;
        requests->resubmit = 1;
        requests->resubmit_field_list = phv->instruction[0] == RESUBMIT ? KEEPS_MARK : 0;
        break;
    case CLONE:
        phv->meta.mark = 77;
        requests->clone = 1;
        requests->clone_session = argument;
        requests->clone_field_list = KEEPS_MARK;
        break;
    case TRUNCATE:
        requests->truncate = 1;
        requests->truncate_length_bytes = argument;
        break;
    case DIGEST:
        sw->digest(sw, 5, words, 2);
        break;
    case LOG:
        sw->log(sw, "logged by the program");
        break;
    }
}

static void egress(struct gb_switch *sw, struct gb_packet *packet) {
    struct phv *phv = phv_of(packet);
    struct gb_requests *requests = &packet->pass->requests;
    uint8_t argument = phv->instruction[4];
    switch (phv->instruction[3]) {
    case DROP:
        packet->pass->std.egress_spec = sw->drop_port;
        break;
    case RECIRCULATE:
    case RECIRCULATE_FORGETTING:
        phv->meta.mark = argument;
        requests->recirculate = 1;
        requests->recirculate_field_list = phv->instruction[3] == RECIRCULATE ? KEEPS_MARK : 0;
        break;
    case CLONE_EGRESS:
        if (packet->pass->std.instance_type == GB_INSTANCE_EGRESS_CLONE) {
            phv->reported = 1;
            break;
        }
        phv->meta.mark = 88;
        phv->meta.mark_in_parser = 99;
        requests->clone = 1;
        requests->clone_session = argument;
        requests->clone_field_list = KEEPS_MARK;
        break;
    case REPORT:
        phv->reported = 1;
        break;
    case TRUNCATE_EGRESS:
        requests->truncate = 1;
        requests->truncate_length_bytes = argument;
        break;
    case GROW:
        phv->grown = argument;
        break;
    }
}

static void push(struct gb_packet *packet, uint32_t length) {
    packet->data -= length;
    packet->headroom -= length;
    packet->length += length;
}

static void push_report(struct gb_packet *packet, const struct phv *phv) {
    const struct gb_standard_metadata *std = &packet->pass->std;
    uint64_t values[] = {std->ingress_port,
                         std->egress_spec,
                         std->egress_port,
                         std->instance_type,
                         std->packet_length,
                         std->enq_timestamp,
                         std->enq_qdepth,
                         std->deq_timedelta,
                         std->deq_qdepth,
                         std->ingress_global_timestamp,
                         std->egress_global_timestamp,
                         std->mcast_grp,
                         std->egress_rid,
                         std->checksum_error,
                         std->parser_error,
                         std->priority,
                         phv->meta.mark,
                         phv->meta.mark_in_parser};
    push(packet, sizeof values);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        gb_store64(packet->data + i * 8, values[i]);
}

static void deparse(struct gb_switch *sw, struct gb_packet *packet) {
    struct phv *phv = phv_of(packet);
    uint32_t taken = packet->payload_offset;
    if (phv->grown * GROWTH_BYTES + INSTRUCTION_BYTES + REPORT_BYTES > taken + packet->headroom) {
        packet->length = 0;
        return;
    }
    packet->data += taken;
    packet->headroom += taken;
    packet->length -= taken;
    if (phv->instruction[3] == KEEP) {
        push(packet, INSTRUCTION_BYTES);
        memcpy(packet->data, phv->instruction, INSTRUCTION_BYTES);
    }
    for (uint64_t i = 0; i < phv->grown; i++) {
        push(packet, GROWTH_BYTES);
        memset(packet->data, 'g', GROWTH_BYTES);
    }
    if (phv->reported)
        push_report(packet, phv);
}

static void copy_field_list(uint32_t field_list, struct gb_packet *to, const struct gb_packet *from) {
    if (field_list == KEEPS_MARK)
        phv_of(to)->meta.mark = ((const struct phv *)from->pass->phv)->meta.mark;
}

static void reset_metadata(struct gb_packet *packet) {
    memset(&phv_of(packet)->meta, 0, sizeof phv_of(packet)->meta);
}

static const struct gb_layout layout;

const struct gb_program gb_program = {
    .abi_version = GB_ABI_VERSION,
    .phv_words = (sizeof(struct phv) + 7) / 8,
    .name = "instructed",
    .parse = parse,
    .ingress = ingress,
    .egress = egress,
    .deparse = deparse,
    .copy_field_list = copy_field_list,
    .reset_metadata = reset_metadata,
    .max_header_bytes = 12 * GROWTH_BYTES,
    .layout = &layout,
};
