/* Match-action tables by tuple space search: one hash table per distinct mask, visited by falling priority.
 *
 * Exact tables have one tuple; lpm tables one per prefix length, the longest first; ternary tables one per mask in
 * use. A range is hashed by the prefix that all its values share, and its ends are compared afterwards.
 */
#include <stdlib.h>

#include "state.h"

#define FIRST_CAPACITY 8u

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    unsigned __int128 product = (unsigned __int128)(hash ^ word ^ UINT64_C(0x2545f4914f6cdd1d)) *
                                UINT64_C(0x9fb21c651e98df25);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_masked(const uint64_t *key, const uint64_t *mask, uint32_t words) {
    uint64_t hash = words;
    for (uint32_t i = 0; i < words; i++)
        hash = mix(hash, key[i] & mask[i]);
    return hash;
}

static inline bool same_masked(const uint64_t *masked, const uint64_t *key, const uint64_t *mask, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        if (masked[i] != (key[i] & mask[i]))
            return false;
    return true;
}

/* The slot of the chain with this masked key, or the empty slot where it would go. */
static inline struct gb_slot *find_slot(const struct gb_tuple *tuple, uint64_t hash, const uint64_t *key,
                                        uint32_t words) {
    for (uint32_t at = (uint32_t)hash & (tuple->capacity - 1);; at = (at + 1) & (tuple->capacity - 1)) {
        struct gb_slot *slot = &tuple->slots[at];
        if (!slot->entry || (slot->hash == hash && same_masked(slot->entry->key, key, tuple->mask, words)))
            return slot;
    }
}

static int compare_words(const uint64_t *a, const uint64_t *b, uint32_t words) {
    for (uint32_t i = words; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static inline uint32_t field_words(const struct gb_key_layout *field) { return (field->width_bits + 63) / 64; }

static bool in_ranges(const struct gb_table_layout *layout, const struct gb_entry *entry, const uint64_t *key) {
    const uint64_t *low = entry->key + layout->key_words, *high = low + layout->key_words;
    for (uint32_t i = 0, at = 0; i < layout->key_field_count; i++) {
        uint32_t words = field_words(&layout->key[i]);
        if (layout->key[i].match == GB_RANGE &&
            (compare_words(key + at, low + at, words) < 0 || compare_words(key + at, high + at, words) > 0))
            return false;
        at += words;
    }
    return true;
}

static inline bool precedes(const struct gb_entry *a, const struct gb_entry *b) {
    return a->priority > b->priority || (a->priority == b->priority && a->sequence < b->sequence);
}

struct gb_entry *gb_table_lookup(const struct gb_table *table, const uint64_t *key) {
    const struct gb_table_layout *layout = table->layout;
    struct gb_entry *best = NULL;
    for (uint32_t i = 0; i < table->tuple_count; i++) {
        const struct gb_tuple *tuple = table->tuples[i];
        if (best && tuple->best_priority < best->priority)
            break;
        uint64_t hash = hash_masked(key, tuple->mask, layout->key_words);
        struct gb_entry *entry = find_slot(tuple, hash, key, layout->key_words)->entry;
        if (layout->match == GB_RANGE)
            while (entry && !in_ranges(layout, entry, key))
                entry = entry->next;
        if (entry && (!best || precedes(entry, best)))
            best = entry;
    }
    return best ? best : table->default_entry;
}

/* ---- Tuples ---- */

static struct gb_tuple *tuple_create(const uint64_t *mask, uint32_t words) {
    struct gb_tuple *tuple = calloc(1, sizeof *tuple);
    if (!tuple)
        return NULL;
    tuple->mask = calloc(words ? words : 1, sizeof *tuple->mask);
    tuple->slots = calloc(FIRST_CAPACITY, sizeof *tuple->slots);
    if (!tuple->mask || !tuple->slots) {
        free(tuple->mask);
        free(tuple->slots);
        free(tuple);
        return NULL;
    }
    memcpy(tuple->mask, mask, words * sizeof *mask);
    tuple->capacity = FIRST_CAPACITY;
    tuple->best_priority = INT64_MIN;
    return tuple;
}

static void tuple_free(struct gb_tuple *tuple) {
    free(tuple->mask);
    free(tuple->slots);
    free(tuple);
}

static bool tuple_make_room(struct gb_tuple *tuple) {
    if ((tuple->used + 1) * 4 <= tuple->capacity * 3)
        return true;
    uint32_t capacity = tuple->capacity * 2;
    struct gb_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < tuple->capacity; i++) {
        if (!tuple->slots[i].entry)
            continue;
        uint32_t at = (uint32_t)tuple->slots[i].hash & (capacity - 1);
        while (slots[at].entry)
            at = (at + 1) & (capacity - 1);
        slots[at] = tuple->slots[i];
    }
    free(tuple->slots);
    tuple->slots = slots;
    tuple->capacity = capacity;
    return true;
}

/* Empty a slot and close the gap, so that probing never needs tombstones. */
static void tuple_remove_slot(struct gb_tuple *tuple, struct gb_slot *slot) {
    uint32_t last = tuple->capacity - 1, gap = (uint32_t)(slot - tuple->slots);
    for (uint32_t at = (gap + 1) & last; tuple->slots[at].entry; at = (at + 1) & last) {
        uint32_t home = (uint32_t)tuple->slots[at].hash & last;
        if (((at - home) & last) >= ((at - gap) & last)) {
            tuple->slots[gap] = tuple->slots[at];
            gap = at;
        }
    }
    tuple->slots[gap] = (struct gb_slot){0, NULL};
    tuple->used--;
}

static struct gb_tuple *table_tuple(struct gb_table *table, const uint64_t *mask) {
    uint32_t words = table->layout->key_words;
    for (uint32_t i = 0; i < table->tuple_count; i++)
        if (memcmp(table->tuples[i]->mask, mask, words * sizeof *mask) == 0)
            return table->tuples[i];
    if (table->tuple_count == table->tuple_capacity) {
        uint32_t capacity = table->tuple_capacity ? table->tuple_capacity * 2 : 4;
        struct gb_tuple **tuples = realloc(table->tuples, capacity * sizeof *tuples);
        if (!tuples)
            return NULL;
        table->tuples = tuples;
        table->tuple_capacity = capacity;
    }
    struct gb_tuple *tuple = tuple_create(mask, words);
    if (tuple)
        table->tuples[table->tuple_count++] = tuple;
    return tuple;
}

static void table_remove_tuple(struct gb_table *table, struct gb_tuple *tuple) {
    uint32_t at = 0;
    while (table->tuples[at] != tuple)
        at++;
    table->tuple_count--;
    memmove(&table->tuples[at], &table->tuples[at + 1], (table->tuple_count - at) * sizeof tuple);
    tuple_free(tuple);
}

static void table_raise_tuple(struct gb_table *table, struct gb_tuple *tuple, int64_t priority) {
    if (priority <= tuple->best_priority)
        return;
    tuple->best_priority = priority;
    uint32_t at = 0;
    while (table->tuples[at] != tuple)
        at++;
    for (; at > 0 && table->tuples[at - 1]->best_priority < priority; at--)
        table->tuples[at] = table->tuples[at - 1];
    table->tuples[at] = tuple;
}

/* ---- Entries ---- */

static struct gb_entry *entry_create(const struct gb_table_layout *layout) {
    size_t key_words = (size_t)layout->key_words * (layout->match == GB_RANGE ? 3 : 1);
    struct gb_entry *entry = calloc(1, sizeof *entry + key_words * sizeof(uint64_t));
    if (!entry)
        return NULL;
    entry->key = (uint64_t *)(entry + 1);
    entry->own_call = calloc(1, sizeof *entry->own_call + layout->data_words * sizeof(uint64_t));
    if (layout->meter_unit)
        entry->meter = calloc(1, sizeof *entry->meter);
    if (!entry->own_call || (layout->meter_unit && !entry->meter)) {
        free(entry->own_call);
        free(entry->meter);
        free(entry);
        return NULL;
    }
    entry->call = entry->own_call;
    entry->call->action = GB_NO_ACTION;
    return entry;
}

static void entry_free(struct gb_entry *entry) {
    if (!entry)
        return;
    free(entry->own_call);
    free(entry->meter);
    free(entry);
}

static void set_call(const struct gb_table_layout *layout, struct gb_entry *entry, uint32_t action,
                     const uint64_t *data, uint32_t data_words) {
    entry->own_call->action = action;
    for (uint32_t i = 0; i < layout->data_words; i++)
        entry->own_call->data[i] = i < data_words ? data[i] : 0;
    entry->call = entry->own_call;
}

static bool reserve_handle(struct gb_table *table) {
    if (table->free_count > 0 || table->handle_count < table->handle_capacity)
        return true;
    uint32_t capacity = table->handle_capacity ? table->handle_capacity * 2 : 16;
    struct gb_entry **entries = realloc(table->entries, capacity * sizeof *entries);
    if (!entries)
        return false;
    table->entries = entries;
    uint32_t *free_handles = realloc(table->free_handles, capacity * sizeof *free_handles);
    if (!free_handles)
        return false;
    table->free_handles = free_handles;
    table->handle_capacity = capacity;
    return true;
}

/* The mask under which all of [low, high] is one key: the bits above the highest in which the ends differ. */
static void range_mask(uint64_t *mask, const uint64_t *low, const uint64_t *high, uint32_t width_bits) {
    uint32_t words = (width_bits + 63) / 64;
    bool differ = false;
    for (uint32_t i = words; i-- > 0;) {
        uint64_t full = gb_mask(i + 1 < words ? 64 : width_bits - 64 * i), difference = low[i] ^ high[i];
        if (differ)
            mask[i] = 0;
        else if (difference)
            mask[i] = full & ~gb_mask(64 - (unsigned)__builtin_clzll(difference));
        else
            mask[i] = full;
        differ |= difference != 0;
    }
}

static bool same_entry(const struct gb_table_layout *layout, const struct gb_entry *a, const struct gb_entry *b) {
    return a->priority == b->priority &&
           (layout->match != GB_RANGE || memcmp(a->key + layout->key_words, b->key + layout->key_words,
                                                2 * layout->key_words * sizeof *a->key) == 0);
}

static void fill_key(const struct gb_table_layout *layout, struct gb_entry *entry, const uint64_t *value,
                     uint64_t *mask, const uint64_t *high) {
    uint32_t words = layout->key_words;
    if (layout->match == GB_RANGE) {
        memcpy(entry->key + words, value, words * sizeof *value);
        memcpy(entry->key + 2 * words, high, words * sizeof *high);
        for (uint32_t i = 0, at = 0; i < layout->key_field_count; at += field_words(&layout->key[i++])) {
            if (layout->key[i].match == GB_RANGE)
                range_mask(mask + at, value + at, high + at, layout->key[i].width_bits);
            else
                for (uint32_t j = at; j < at + field_words(&layout->key[i]); j++)
                    entry->key[words + j] = entry->key[2 * words + j] = value[j] & mask[j];
        }
    }
    for (uint32_t i = 0; i < words; i++)
        entry->key[i] = value[i] & mask[i];
}

int64_t gb_table_insert(struct gb_table *table, const uint64_t *value, const uint64_t *mask, const uint64_t *high,
                        int64_t priority, uint32_t action, const uint64_t *data, uint32_t data_words) {
    const struct gb_table_layout *layout = table->layout;
    uint32_t words = layout->key_words;
    struct gb_entry *entry = entry_create(layout);
    uint64_t *full_mask = malloc((words ? words : 1) * sizeof *full_mask);
    if (!entry || !full_mask || !reserve_handle(table)) {
        entry_free(entry);
        free(full_mask);
        return GB_NO_MEMORY;
    }
    memcpy(full_mask, mask, words * sizeof *mask);
    fill_key(layout, entry, value, full_mask, high);
    entry->priority = priority;
    entry->sequence = table->next_sequence++;
    set_call(layout, entry, action, data, data_words);

    struct gb_tuple *tuple = table_tuple(table, full_mask);
    free(full_mask);
    if (!tuple || !tuple_make_room(tuple)) {
        if (tuple && tuple->entry_count == 0)
            table_remove_tuple(table, tuple);
        entry_free(entry);
        return GB_NO_MEMORY;
    }
    entry->tuple = tuple;
    entry->hash = hash_masked(entry->key, tuple->mask, words);
    struct gb_slot *slot = find_slot(tuple, entry->hash, entry->key, words);
    int refusal = 0;
    for (struct gb_entry *other = slot->entry; other; other = other->next)
        if (same_entry(layout, entry, other))
            refusal = GB_EXISTS;
    if (!refusal && table->entry_count >= layout->max_entries)
        refusal = GB_FULL;
    if (refusal) {
        if (tuple->entry_count == 0)
            table_remove_tuple(table, tuple);
        entry_free(entry);
        return refusal;
    }
    if (!slot->entry) {
        tuple->used++;
        slot->hash = entry->hash;
    }
    struct gb_entry **link = &slot->entry;
    while (*link && precedes(*link, entry))
        link = &(*link)->next;
    entry->next = *link;
    *link = entry;
    tuple->entry_count++;
    table_raise_tuple(table, tuple, priority);
    entry->handle = table->free_count ? table->free_handles[--table->free_count] : table->handle_count++;
    table->entries[entry->handle] = entry;
    table->entry_count++;
    return entry->handle;
}

struct gb_entry *gb_table_entry(const struct gb_table *table, int64_t handle) {
    if (handle == -1)
        return table->default_entry;
    return handle >= 0 && handle < table->handle_count ? table->entries[handle] : NULL;
}

/* Members and groups of action profiles count the entries that refer to them. */
static void drop_references(struct gb_entry *entry) {
    if (entry->group)
        entry->group->references--;
    if (entry->member)
        entry->member->references--;
    entry->group = NULL;
    entry->member = NULL;
}

int gb_table_modify(struct gb_table *table, int64_t handle, uint32_t action, const uint64_t *data,
                    uint32_t data_words) {
    struct gb_entry *entry = gb_table_entry(table, handle);
    if (!entry)
        return GB_NO_SUCH;
    drop_references(entry);
    set_call(table->layout, entry, action, data, data_words);
    return 0;
}

int gb_table_delete(struct gb_table *table, int64_t handle) {
    struct gb_entry *entry = handle >= 0 ? gb_table_entry(table, handle) : NULL;
    if (!entry)
        return GB_NO_SUCH;
    struct gb_tuple *tuple = entry->tuple;
    struct gb_slot *slot = find_slot(tuple, entry->hash, entry->key, table->layout->key_words);
    struct gb_entry **link = &slot->entry;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    if (!slot->entry)
        tuple_remove_slot(tuple, slot);
    if (--tuple->entry_count == 0)
        table_remove_tuple(table, tuple);
    drop_references(entry);
    table->entries[handle] = NULL;
    table->free_handles[table->free_count++] = (uint32_t)handle;
    table->entry_count--;
    entry_free(entry);
    return 0;
}

int gb_table_count(const struct gb_table *table, int64_t handle, struct gb_count *count) {
    const struct gb_entry *entry = gb_table_entry(table, handle);
    if (!entry)
        return GB_NO_SUCH;
    *count = entry->count;
    return 0;
}

int gb_table_count_write(struct gb_table *table, int64_t handle, const struct gb_count *count) {
    struct gb_entry *entry = gb_table_entry(table, handle);
    if (!entry)
        return GB_NO_SUCH;
    entry->count = *count;
    return 0;
}

struct gb_meter_cell *gb_table_meter_cell(struct gb_table *table, int64_t handle) {
    struct gb_entry *entry = gb_table_entry(table, handle);
    return entry ? entry->meter : NULL;
}

/* ---- Entries that refer to members and groups of an action profile ---- */

static struct gb_profile *table_profile(struct gb_switch *sw, uint32_t table) {
    int32_t profile = sw->tables[table]->layout->profile;
    return profile < 0 ? NULL : sw->profiles[profile];
}

int gb_table_set_member(struct gb_switch *sw, uint32_t table, int64_t handle, uint32_t member_id) {
    struct gb_profile *profile = table_profile(sw, table);
    struct gb_entry *entry = gb_table_entry(sw->tables[table], handle);
    struct gb_member *member = profile ? gb_profile_member(profile, member_id) : NULL;
    if (!entry || !member)
        return GB_NO_SUCH;
    drop_references(entry);
    member->references++;
    entry->member = member;
    entry->call = member->call;
    return 0;
}

int gb_table_set_group(struct gb_switch *sw, uint32_t table, int64_t handle, uint32_t group_id) {
    struct gb_profile *profile = table_profile(sw, table);
    struct gb_entry *entry = gb_table_entry(sw->tables[table], handle);
    struct gb_group *group = profile ? gb_profile_group(profile, group_id) : NULL;
    if (!entry || !group)
        return GB_NO_SUCH;
    drop_references(entry);
    group->references++;
    entry->group = group;
    return 0;
}

/* ---- Life ---- */

struct gb_table *gb_table_create(const struct gb_table_layout *layout) {
    struct gb_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->layout = layout;
    table->default_entry = entry_create(layout);
    if (!table->default_entry) {
        free(table);
        return NULL;
    }
    return table;
}

void gb_table_free(struct gb_table *table) {
    if (!table)
        return;
    for (uint32_t i = 0; i < table->handle_count; i++)
        entry_free(table->entries[i]);
    for (uint32_t i = 0; i < table->tuple_count; i++)
        tuple_free(table->tuples[i]);
    entry_free(table->default_entry);
    free(table->entries);
    free(table->free_handles);
    free(table->tuples);
    free(table);
}
