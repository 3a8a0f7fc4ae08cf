/* What a switch's P4 code reads and writes: tables, registers, counters, meters, value sets, action profiles.
 *
 * Key fields and action arguments are runs of 64-bit words, least significant word first, one run per field, with
 * the unused high bits zero. Nothing here takes locks: the caller sees to it that one thread at a time is inside.
 */
#ifndef GRADBED_STATE_H
#define GRADBED_STATE_H

#include <stdbool.h>

#include "bits.h"
#include "cache_lines.h"
#include "program.h"

/* ---- What a program needs, laid out by the code generator ---- */

enum gb_match { GB_EXACT = 0, GB_LPM = 1, GB_TERNARY = 2, GB_RANGE = 3 };
enum gb_meter_unit { GB_METER_NONE = 0, GB_METER_PACKETS = 1, GB_METER_BYTES = 2 };

struct gb_key_layout {
    uint32_t width_bits;
    uint32_t match;             /* enum gb_match; optional fields are ternary, validity is an exact bit */
};

struct gb_table_layout {
    const char *name;
    uint32_t match;             /* the most general of its fields' kinds; decides how entries compete */
    uint32_t key_field_count, key_words;
    const struct gb_key_layout *key;
    uint32_t data_words;        /* the most that an action of the table takes */
    uint32_t max_entries;
    uint32_t meter_unit;        /* of the direct meter */
    int32_t profile;            /* index of its action profile, or -1 */
    int32_t recent;             /* which of the GB_RECENTS its look-ups have, or -1 */
};

struct gb_register_layout { const char *name; uint32_t width_bits, size; };
struct gb_counter_layout { const char *name; uint32_t size; };
struct gb_meter_layout { const char *name; uint32_t unit, size; };
struct gb_value_set_layout { const char *name; uint32_t width_bits; };
struct gb_profile_layout { const char *name; uint32_t data_words, max_members; };

/* Externs that v1model does not have (externs/): what is made with the attributes of their constructors. NULL when
 * out of memory. The functions of a kind take what `create` made first. */
struct gb_extern_kind {
    void *(*create)(const uint64_t *attributes);
    void (*free)(void *);
};

#define GB_MOST_ATTRIBUTES 4
struct gb_extern_layout {
    const char *name;
    const struct gb_extern_kind *kind;
    uint64_t attributes[GB_MOST_ATTRIBUTES];
};

struct gb_layout {
    uint32_t table_count, register_count, counter_count, meter_count, value_set_count, profile_count, extern_count;
    uint32_t drop_site_count;
    const struct gb_table_layout *tables;
    const struct gb_register_layout *registers;
    const struct gb_counter_layout *counters;
    const struct gb_meter_layout *meters;
    const struct gb_value_set_layout *value_sets;
    const struct gb_profile_layout *profiles;
    const struct gb_extern_layout *externs;
};

/* What state-changing calls return when they refuse. */
enum gb_refusal {
    GB_NO_MEMORY = -1,
    GB_EXISTS = -2,
    GB_FULL = -3,
    GB_NO_SUCH = -4,            /* handle, member or group */
    GB_IN_USE = -5,
};

/* ---- Tables (tables.c) ---- */

#define GB_NO_ACTION UINT32_MAX

struct gb_group;
struct gb_member;
struct gb_tuple;

/* An action with its arguments. The action is its id in the JSON. */
struct gb_call {
    uint32_t action;
    uint64_t data[];
};

enum gb_colour { GB_GREEN = 0, GB_YELLOW = 1, GB_RED = 2 };

/* A two-rate three-colour marker (RFC 2698) or a single-rate one (RFC 2697), colour-blind. Tokens are packets or
 * bytes; of a single-rate marker the peak bucket is the excess bucket. */
struct gb_meter_cell {
    bool configured, single_rate;
    double committed_per_us, peak_per_us, committed_burst, peak_burst;
    double committed_tokens, peak_tokens;
    uint64_t last_us;
    struct gb_count marked[3];  /* by enum gb_colour */
};

/* What a packet takes stands together. Right in front lie the key and the entry's own call. */
struct gb_entry {
    struct gb_call *call;       /* its own, or that of its member; meaningless when there is a group */
    struct gb_group *group;     /* of a selector table's entry, or NULL */
    struct gb_count count;      /* direct counter */
    uint64_t *key;              /* masked values, and for range tables the low and the high ends */
    struct gb_entry *next;      /* same masked key, later in precedence */
    int64_t priority;           /* larger wins; among equals the one that was there first */
    uint64_t sequence;
    struct gb_member *member;   /* of an indirect table's entry, or NULL */
    struct gb_call *own_call;
    struct gb_tuple *tuple;
    struct gb_meter_cell *meter;
    uint64_t last_hit_us;       /* or when it was inserted; of tables with idle timeouts */
    uint64_t hash;
    uint32_t handle;
    void *memory;               /* in which all this lies */
};

/* tag: the masked key, if that is one word, so that the entry need not be looked at; else its hash. */
struct gb_slot { uint64_t tag; struct gb_entry *entry; };

/* All entries with one mask, hashed by masked key. */
struct gb_tuple {
    struct gb_slot *slots;
    uint32_t capacity, used;    /* slots: a power of two, at most 3/4 used */
    int64_t best_priority;      /* no entry of the tuple has a larger one */
    bool hashed;                /* searched by hash; else its entries are among the table's rules */
    uint32_t entry_count;
    struct gb_tuple *next;      /* in the set's bucket */
    uint64_t mask[];
};

struct gb_tuple_set {
    struct gb_tuple **buckets;  /* by mask; a power of two, or none */
    uint32_t bucket_count, count;
};

/* Entries of tuples that are not worth a hash look-up each. */
struct gb_rules {
    uint32_t block_count, block_capacity;
    uint32_t nibble_count;                  /* 0: this table has no rules */
    struct gb_rule_block **blocks;          /* by falling precedence */
    struct gb_rule_block *one_block;        /* what `blocks` points to while it is one */
    struct gb_nibble {
        uint32_t word;
        uint8_t shift, match;               /* match: enum gb_match */
        bool begins_field;
    } *nibbles;                             /* of the key: field after field, the most significant first */
};

/* Of large lpm tables: the prefix lengths that can match, by the first 16 bits of the key. */
struct gb_lpm_index {
    uint64_t *lengths;          /* sets; NULL: no index */
    uint32_t word, shift;       /* where those 16 bits are */
    uint32_t deleted;           /* prefixes that the sets may still hold */
};

/* What every look-up takes is the first line of the cache, and the second with rules. */
struct gb_table {
    const struct gb_table_layout *layout;
    struct gb_entry *default_entry;
    uint64_t version;           /* another one whenever an entry comes or goes; no two tables have the same */
    struct gb_tuple **hashed;   /* by falling best_priority */
    uint32_t hashed_count, hashed_capacity;
    struct gb_lpm_index lpm;
    struct gb_rules rules;
    struct gb_tuple *one_hashed;            /* what `hashed` points to while it is one */
    struct gb_tuple_set tuples;
    struct gb_entry **entries;  /* by handle; NULL when free */
    uint32_t *free_handles;
    uint32_t entry_count, handle_count, handle_capacity, free_count;
    uint64_t next_sequence;
};

/* The entry that matches, or table->default_entry. `key` holds layout->key_words words. */
struct gb_entry *gb_table_lookup(const struct gb_table *, const uint64_t *key);

/* The same, with what was found last, of a table with keys of one word. */
static inline struct gb_entry *gb_table_lookup_recent(struct gb_recent *recent, const struct gb_table *table,
                                                      const uint64_t *key) {
    if (recent->version != table->version || recent->key != key[0])
        *recent = (struct gb_recent){table->version, key[0], gb_table_lookup(table, key)};
    return recent->entry;
}

/* Value and mask are as long as the key. In range fields, value and high are the inclusive ends and mask is
 * ignored; elsewhere high is ignored, and it may be NULL in tables without range fields. For lpm tables the
 * priority must be the prefix length. Returns the entry's handle or an enum gb_refusal. */
int64_t gb_table_insert(struct gb_table *, const uint64_t *value, const uint64_t *mask, const uint64_t *high,
                        int64_t priority, uint32_t action, const uint64_t *data, uint32_t data_words);
/* Handle -1 is the default entry. */
int gb_table_modify(struct gb_table *, int64_t handle, uint32_t action, const uint64_t *data, uint32_t data_words);
int gb_table_delete(struct gb_table *, int64_t handle);
struct gb_entry *gb_table_entry(const struct gb_table *, int64_t handle);
int gb_table_count(const struct gb_table *, int64_t handle, struct gb_count *);
int gb_table_count_write(struct gb_table *, int64_t handle, const struct gb_count *);
int gb_table_hit(struct gb_table *, int64_t handle, uint64_t now_us);
int gb_table_last_hit(const struct gb_table *, int64_t handle, uint64_t *last_hit_us);
/* Let an entry refer to a member of the table's action profile, or to a group. */
int gb_table_set_member(struct gb_switch *, uint32_t table, int64_t handle, uint32_t member);
int gb_table_set_group(struct gb_switch *, uint32_t table, int64_t handle, uint32_t group);

struct gb_table *gb_table_create(const struct gb_table_layout *);
void gb_table_free(struct gb_table *);

/* ---- Action profiles and selectors (profiles.c) ---- */

struct gb_member { uint32_t id, references; struct gb_call *call; };
struct gb_group {
    uint32_t id, references;
    uint32_t size;              /* of calls: of the members whose ports are up */
    struct gb_call **calls;
    uint32_t member_count;
    uint32_t *members;          /* all of them */
    uint32_t *watched;          /* the port that each watches, or GB_NO_WATCH; NULL when none does */
};

#define GB_NO_WATCH UINT32_MAX
#define GB_WATCHABLE_PORTS 512

struct gb_profile {
    const struct gb_profile_layout *layout;
    struct gb_member **members; /* by rising id, as are groups */
    struct gb_group **groups;
    uint32_t member_count, member_capacity, group_count, group_capacity;
    const uint64_t *ports_down; /* a bit for each port; NULL: all are up */
};

/* The member of the entry's group that a hash of the packet selects; NULL when the group has none that is up. */
static inline struct gb_call *gb_select(const struct gb_entry *entry, uint64_t hash) {
    if (!entry->group)
        return entry->call;
    return entry->group->size ? entry->group->calls[hash % entry->group->size] : NULL;
}

struct gb_profile *gb_profile_create(const struct gb_profile_layout *);
void gb_profile_free(struct gb_profile *);
int gb_profile_member_set(struct gb_profile *, uint32_t id, uint32_t action, const uint64_t *data, uint32_t words);
int gb_profile_member_delete(struct gb_profile *, uint32_t id);
/* Members may repeat: that is their weight. watched: for each the port without which it is left out, or GB_NO_WATCH;
 * NULL when they watch none. */
int gb_profile_group_set(struct gb_profile *, uint32_t id, const uint32_t *members, const uint32_t *watched,
                         uint32_t count);
int gb_profile_group_delete(struct gb_profile *, uint32_t id);
struct gb_member *gb_profile_member(const struct gb_profile *, uint32_t id);
struct gb_group *gb_profile_group(const struct gb_profile *, uint32_t id);
/* From now on these ports are down: a bit for each of GB_WATCHABLE_PORTS, which stay the caller's. Call it again when
 * they have changed. NULL: all are up. */
void gb_switch_watch_ports(struct gb_switch *, const uint64_t *ports_down);

/* ---- Counters ---- */

static inline void gb_count_packet(struct gb_count *count, uint64_t bytes) {
    count->packets++;
    count->bytes += bytes;
}

static inline void gb_counter_count(struct gb_counter *counter, uint64_t index, uint64_t bytes) {
    if (index < counter->size)
        gb_count_packet(&counter->cells[index], bytes);
}

/* For the control plane. GB_NO_SUCH for a bad index. */
int gb_counter_get(const struct gb_counter *, uint32_t first, uint32_t count, struct gb_count *);
int gb_counter_set(struct gb_counter *, uint32_t index, const struct gb_count *);

/* ---- Registers: a read out of range gives 0, a write does nothing ---- */

#define GB_REGISTER_ACCESS(bits)                                                                               \
    static inline uint64_t gb_register_read##bits(const struct gb_register *r, uint64_t index) {               \
        return index < r->size ? ((const uint##bits##_t *)r->cells)[index] : 0;                                \
    }                                                                                                          \
    static inline void gb_register_write##bits(struct gb_register *r, uint64_t index, uint64_t value) {        \
        if (index < r->size)                                                                                   \
            ((uint##bits##_t *)r->cells)[index] = (uint##bits##_t)value;                                       \
    }
GB_REGISTER_ACCESS(8)
GB_REGISTER_ACCESS(16)
GB_REGISTER_ACCESS(32)
GB_REGISTER_ACCESS(64)
#undef GB_REGISTER_ACCESS

static inline void gb_register_read_wide(uint64_t *words, const struct gb_register *r, uint64_t index) {
    if (index < r->size)
        memcpy(words, (const uint64_t *)r->cells + index * r->word_count, r->word_count * sizeof *words);
    else
        memset(words, 0, r->word_count * sizeof *words);
}

static inline void gb_register_write_wide(struct gb_register *r, uint64_t index, const uint64_t *words) {
    if (index < r->size)
        memcpy((uint64_t *)r->cells + index * r->word_count, words, r->word_count * sizeof *words);
}

/* For the control plane: cells of any register as word_count words each. GB_NO_SUCH for a bad index. */
int gb_register_get(const struct gb_register *, uint32_t first, uint32_t count, uint64_t *words);
int gb_register_set(struct gb_register *, uint32_t index, const uint64_t *words);

/* ---- Meters (meters.c) ---- */

struct gb_meter { uint32_t unit, size; struct gb_meter_cell *cells; };

/* The colour of a packet of that length. */
uint64_t gb_meter_mark(struct gb_meter_cell *, enum gb_meter_unit, uint64_t now_us, uint64_t bytes);
/* The colour, or `otherwise` when the index is out of range. */
static inline uint64_t gb_meter_execute(struct gb_meter *meter, uint64_t index, uint64_t now_us, uint64_t bytes,
                                        uint64_t otherwise) {
    if (index >= meter->size)
        return otherwise;
    return gb_meter_mark(&meter->cells[index], (enum gb_meter_unit)meter->unit, now_us, bytes);
}
/* Rates in units per second. Buckets start full. */
void gb_meter_configure(struct gb_meter_cell *, double committed_per_s, double committed_burst, double peak_per_s,
                        double peak_burst);
void gb_meter_configure_single_rate(struct gb_meter_cell *, double committed_per_s, double committed_burst,
                                    double excess_burst);
/* Everything is green. */
void gb_meter_reset(struct gb_meter_cell *);
void gb_meter_counts(const struct gb_meter_cell *, struct gb_count marked[3]);
void gb_meter_counts_clear(struct gb_meter_cell *);
struct gb_meter_cell *gb_meter_cell(struct gb_meter *, uint32_t index);
struct gb_meter_cell *gb_table_meter_cell(struct gb_table *, int64_t handle);

/* ---- Value sets ---- */

struct gb_value_set {
    const struct gb_value_set_layout *layout;
    uint32_t count;
    uint64_t *values, *masks;   /* count runs of words each */
};

bool gb_value_set_contains(const struct gb_value_set *, const uint64_t *value);
/* Compare only the bits in `mask`; `value` has no others. */
bool gb_value_set_contains_masked(const struct gb_value_set *, const uint64_t *value, const uint64_t *mask);
int gb_value_set_replace(struct gb_value_set *, uint32_t count, const uint64_t *values, const uint64_t *masks);

/* ---- Random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) ---- */

static inline uint64_t gb_random(struct gb_switch *sw) {
    uint64_t z = sw->random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Uniform in [low, high], without bias; low when high < low. */
uint64_t gb_random_between(struct gb_switch *, uint64_t low, uint64_t high);

#endif
