/* What a program generated from BMv2 JSON offers to the engine, and the state that both touch.
 *
 * A program is code alone: everything that differs between two switches that run it is in struct gb_switch.
 * A switch's packets are handled by one thread, so none of this takes locks.
 *
 * Values of up to 64 bits are uint64_t with the unused high bits zero; wider ones are runs of 64-bit words,
 * least significant word first. Table keys and action data are such words, field after field.
 */
#ifndef GRADBED_PROGRAM_H
#define GRADBED_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#define GB_ABI_VERSION 3
#define GB_PORT_DROP 511

/* simple_switch's instance types. */
enum gb_instance_type {
    GB_INSTANCE_NORMAL = 0,
    GB_INSTANCE_INGRESS_CLONE = 1,
    GB_INSTANCE_EGRESS_CLONE = 2,
    GB_INSTANCE_COALESCED = 3,
    GB_INSTANCE_RECIRCULATED = 4,
    GB_INSTANCE_REPLICATED = 5,
    GB_INSTANCE_RESUBMITTED = 6,
};

/* Generated code takes for granted that a value fits the bits which v1model.p4 gives its field. */
struct gb_standard_metadata {
    uint64_t ingress_port, egress_spec, egress_port;
    uint64_t instance_type, packet_length;
    uint64_t enq_timestamp, enq_qdepth, deq_timedelta, deq_qdepth;            /* us and packets */
    uint64_t ingress_global_timestamp, egress_global_timestamp;                /* us since the switch started */
    uint64_t mcast_grp, egress_rid, checksum_error, parser_error, priority;
};

/* What a control asked for besides standard metadata. The engine zeroes it before each control. */
struct gb_requests {
    uint8_t clone, resubmit, recirculate, truncate;   /* 0 or 1 */
    uint32_t clone_session, clone_field_list;         /* a field list of 0 preserves nothing */
    uint32_t resubmit_field_list, recirculate_field_list;
    uint32_t truncate_length_bytes;
};

/* What a packet has while it is in a switch, and not on a link. */
struct gb_packet_context {
    struct gb_standard_metadata std;
    struct gb_requests requests;
    uint64_t phv[];             /* program->phv_words: header validity, header fields and metadata, laid out by the program */
};

/* One packet. The engine owns the memory. */
struct gb_packet {
    uint8_t *data;              /* first byte of the frame */
    uint32_t length;            /* bytes from data on */
    uint32_t headroom;          /* bytes before data that a deparser may use */
    uint32_t payload_offset;    /* set by parse: first byte, from data, that no header took */
    uint8_t keep_metadata;      /* see parse */
    struct gb_packet_context *pass;
};

struct gb_table;                /* opaque here: state/state.h */
struct gb_entry;                /* likewise */
struct gb_register { uint32_t width_bits, size, word_count; void *cells; };  /* cell: 1, 2, 4, 8 bytes, or words */
struct gb_counter { uint32_t size; struct gb_count { uint64_t packets, bytes; } *cells; };
struct gb_meter;                /* opaque here: state/state.h */
struct gb_value_set;            /* opaque here: state/state.h */
struct gb_profile;              /* opaque here: state/state.h */

struct gb_program;

/* What a look-up with a key of one word found, in the table that has that version. Packets that come by one link often have
 * the same key, so each link keeps the last of a few tables (as Open vSwitch's exact-match cache does for flows). */
struct gb_recent { uint64_t version, key; struct gb_entry *entry; };
#define GB_RECENTS 4

/* One switch that runs a program: what its P4 code reads and writes. */
struct gb_switch {
    /* What every packet takes stands together, in two lines of the cache. */
    const struct gb_program *program;
    struct gb_table **tables;
    struct gb_register *registers;
    struct gb_counter *counters;
    struct gb_recent *recents;  /* of the link by which the packet came */
    uint32_t drop_caller;       /* who runs an action that drops: see bmv2_json/drop_sites.py */
    uint32_t drop_site;         /* the last mark_to_drop of this pass, 0 if there was none; odd: a table's miss */
    struct gb_table *recent_tables[GB_RECENTS];     /* those of which links keep what was found; NULL: none */
    uint64_t drop_port;         /* GB_PORT_DROP, unless the engine says otherwise */
    uint64_t random_state;
    struct gb_meter **meters;
    struct gb_value_set **value_sets;
    struct gb_profile **profiles;
    void **externs;             /* as the kind of each has it: struct gb_extern_kind of state/state.h */
    /* Host events, to the engine; never NULL once the engine has adopted the switch. */
    void (*digest)(struct gb_switch *, uint32_t list_id, const uint64_t *words, uint32_t word_count);
    void (*log)(struct gb_switch *, const char *line);
    void *engine;               /* the engine's own record of this switch */
    uint64_t *drop_counts;      /* packets by drop_site */
    struct gb_recent own_recents[GB_RECENTS];   /* of packets that came by no link */
};

struct gb_layout;               /* what state the program needs: state/state.h */

struct gb_program {
    uint32_t abi_version;
    uint32_t phv_words;
    const char *name;
    /* Zero the PHV, run the parser and the verify-checksum control.
     * Sets payload_offset, std.parser_error, std.checksum_error. With keep_metadata the user metadata is left
     * as it is: resubmitted and recirculated packets carry theirs (reset_metadata, then copy_field_list) into
     * the parser. std.ingress_port, std.instance_type and std.packet_length are the engine's to set before.
     * The PHV also remembers the length of the frame: counters and meters count it, whatever becomes of the
     * packet, and egress starts by setting std.packet_length to it plus what headers were added or removed. */
    void (*parse)(struct gb_switch *, struct gb_packet *);
    void (*ingress)(struct gb_switch *, struct gb_packet *);
    void (*egress)(struct gb_switch *, struct gb_packet *);
    /* Run the compute-checksum control and the deparser: write the valid headers before the payload, in place;
     * updates data, length, headroom. Applies no truncation (the engine does). A frame whose headers fit
     * neither in front of the payload nor in the headroom is given length 0: drop it. */
    void (*deparse)(struct gb_switch *, struct gb_packet *);
    /* Copy the fields of a @field_list (clone, resubmit, recirculate) from one packet's PHV to another's. */
    void (*copy_field_list)(uint32_t field_list, struct gb_packet *to, const struct gb_packet *from);
    /* Zero the user metadata in the PHV, not std: for clones, resubmitted and recirculated packets. */
    void (*reset_metadata)(struct gb_packet *);
    uint32_t max_header_bytes;  /* the most that deparse ever writes: headroom of this size always suffices */
    const struct gb_layout *layout;
};

/* State of one switch, as the program's layout asks for it: empty tables with their default actions, zeroed
 * registers, counters and meters. NULL when out of memory. `engine`, `digest` and `log` are NULL; random_state
 * is a constant. Entries and defaults of the JSON are written by switch/state/tables.py. */
struct gb_switch *gb_switch_create(const struct gb_program *);
void gb_switch_free(struct gb_switch *);

/* Every generated library exports exactly this symbol. */
extern const struct gb_program gb_program;

#endif
