/* Match-action tables.
 *
 * Entries are grouped by mask into tuples: exact tables have one, lpm tables one per prefix length, ternary tables
 * one per mask in use. Large tuples are searched by hash, in order of their best entry; the entries of small ones,
 * of which there can be thousands, all together as rules. A range counts as the prefix that all its values share,
 * and its ends are compared afterwards.
 */
#include <stdlib.h>

#include "state/tables.h"

/* From that many entries on, a hash look-up costs less than the tuple's share in searching the rules. */
enum { HASHED_ENTRIES = 512 };
/* From that many prefix lengths on, it pays to know which of them can match. */
enum { INDEXED_LENGTHS = 4 };

static int compare_words(const uint64_t *a, const uint64_t *b, uint32_t words) {
    for (uint32_t i = words; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

bool gb_in_ranges(const struct gb_table_layout *layout, const struct gb_entry *entry, const uint64_t *key) {
    const uint64_t *low = gb_low_ends(layout, entry), *high = gb_high_ends(layout, entry);
    for (uint32_t i = 0, at = 0; i < layout->key_field_count; i++) {
        uint32_t words = gb_field_words(&layout->key[i]);
        if (layout->key[i].match == GB_RANGE &&
            (compare_words(key + at, low + at, words) < 0 || compare_words(key + at, high + at, words) > 0))
            return false;
        at += words;
    }
    return true;
}

struct gb_entry *gb_table_lookup(const struct gb_table *table, const uint64_t *key) {
    const struct gb_table_layout *layout = table->layout;
    const struct gb_lpm_index *lpm = &table->lpm;
    uint64_t lengths = lpm->lengths ? lpm->lengths[gb_lpm_place(lpm, key)] : UINT64_MAX;
    struct gb_entry *best = NULL;
    for (uint32_t i = 0; i < table->hashed_count; i++) {
        const struct gb_tuple *tuple = table->hashed[i];
        if (best && tuple->best_priority < best->priority)
            break;
        /* The priority of a prefix is its length. */
        if (!(lengths >> (uint64_t)tuple->best_priority % 64 & 1))
            continue;
        struct gb_entry *entry = gb_tuple_lookup(tuple, key, layout->key_words);
        if (layout->match == GB_RANGE)
            while (entry && !gb_in_ranges(layout, entry, key))
                entry = entry->next;
        if (entry && (!best || gb_precedes(entry, best)))
            best = entry;
    }
    if (table->rules.block_count)
        best = gb_rules_lookup(&table->rules, layout, key, best);
    return best ? best : table->default_entry;
}

static uint64_t new_version(void) {
    static _Atomic uint64_t last;
    return ++last;
}

/* ---- Tuples of a table ---- */

static void free_hashed(struct gb_table *table) {
    if (table->hashed != &table->one_hashed)
        free(table->hashed);
}

/* Search the tuple by hash from now on; false when out of memory. */
static bool hash_tuple(struct gb_table *table, struct gb_tuple *tuple) {
    if (table->hashed_count == table->hashed_capacity) {
        uint32_t capacity = table->hashed_capacity ? table->hashed_capacity * 2 : 1;
        struct gb_tuple **hashed = capacity == 1 ? &table->one_hashed : calloc(capacity, sizeof *hashed);
        if (!hashed)
            return false;
        if (table->hashed_count)
            memcpy(hashed, table->hashed, table->hashed_count * sizeof *hashed);
        free_hashed(table);
        table->hashed = hashed;
        table->hashed_capacity = capacity;
    }
    for (uint32_t i = 0; i < tuple->capacity; i++)
        for (struct gb_entry *entry = tuple->slots[i].entry; entry; entry = entry->next)
            gb_rules_remove(&table->rules, table->layout, entry);
    table->hashed[table->hashed_count++] = tuple;
    tuple->hashed = true;
    if (table->layout->match == GB_LPM && table->hashed_count >= INDEXED_LENGTHS && !table->lpm.lengths)
        gb_lpm_open(table);
    return true;
}

static uint32_t hashed_place(const struct gb_table *table, const struct gb_tuple *tuple) {
    uint32_t at = 0;
    while (table->hashed[at] != tuple)
        at++;
    return at;
}

/* Keep the order of the hashed tuples. */
static void advance_tuple(struct gb_table *table, struct gb_tuple *tuple) {
    uint32_t at = hashed_place(table, tuple);
    for (; at > 0 && table->hashed[at - 1]->best_priority < tuple->best_priority; at--)
        table->hashed[at] = table->hashed[at - 1];
    table->hashed[at] = tuple;
}

static void remove_if_empty(struct gb_table *table, struct gb_tuple *tuple) {
    if (tuple->entry_count > 0)
        return;
    if (tuple->hashed) {
        uint32_t at = hashed_place(table, tuple);
        table->hashed_count--;
        memmove(&table->hashed[at], &table->hashed[at + 1], (table->hashed_count - at) * sizeof tuple);
    }
    gb_tuple_remove(&table->tuples, tuple, table->layout->key_words);
}

/* The entry knows its tuple and hash, and there is room for it in the tuple. False when out of memory. */
static bool tuple_take_entry(struct gb_table *table, struct gb_entry *entry) {
    struct gb_tuple *tuple = entry->tuple;
    bool large = tuple->entry_count >= HASHED_ENTRIES || table->rules.nibble_count == 0;
    bool grows = entry->priority > tuple->best_priority;
    if (large && !tuple->hashed) {
        if (!hash_tuple(table, tuple))
            return false;
        grows = true;
    }
    if (!tuple->hashed && !gb_rules_add(&table->rules, table->layout, entry))
        return false;
    gb_tuple_add_entry(tuple, entry, table->layout->key_words);
    if (entry->priority > tuple->best_priority)
        tuple->best_priority = entry->priority;
    if (tuple->hashed && grows)
        advance_tuple(table, tuple);
    return true;
}

/* ---- Entries ---- */

/* One piece of memory: the key, the call, and the entry, of which the first half line of the cache is what a packet takes.
 * The call, and perhaps the key, lie in the other half, if there is room. */
static struct gb_entry *entry_create(const struct gb_table_layout *layout) {
    size_t key_bytes = (size_t)layout->key_words * (layout->match == GB_RANGE ? 3 : 1) * sizeof(uint64_t);
    size_t call_bytes = sizeof(struct gb_call) + layout->data_words * sizeof(uint64_t);
    size_t before = (key_bytes + call_bytes + GB_LINE_BYTES / 2 - 1) / GB_LINE_BYTES * GB_LINE_BYTES + GB_LINE_BYTES / 2;
    char *memory = gb_lines_alloc(before + sizeof(struct gb_entry));
    if (!memory)
        return NULL;
    struct gb_entry *entry = (struct gb_entry *)(memory + before);
    entry->memory = memory;
    entry->own_call = (struct gb_call *)((char *)entry - call_bytes);
    entry->key = (uint64_t *)entry->own_call - key_bytes / sizeof(uint64_t);
    if (layout->meter_unit && !(entry->meter = calloc(1, sizeof *entry->meter))) {
        free(memory);
        return NULL;
    }
    entry->call = entry->own_call;
    entry->call->action = GB_NO_ACTION;
    return entry;
}

static void entry_free(struct gb_entry *entry) {
    if (!entry)
        return;
    free(entry->meter);
    free(entry->memory);
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
        for (uint32_t i = 0, at = 0; i < layout->key_field_count; at += gb_field_words(&layout->key[i++])) {
            if (layout->key[i].match == GB_RANGE)
                range_mask(mask + at, value + at, high + at, layout->key[i].width_bits);
            else
                for (uint32_t j = at; j < at + gb_field_words(&layout->key[i]); j++)
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
    uint64_t *full_mask = malloc((words ? words : 1) * sizeof *full_mask);
    if (!full_mask)
        return GB_NO_MEMORY;
    struct gb_entry *entry = entry_create(layout);
    if (!entry || !reserve_handle(table)) {
        entry_free(entry);
        free(full_mask);
        return GB_NO_MEMORY;
    }
    memcpy(full_mask, mask, words * sizeof *mask);
    fill_key(layout, entry, value, full_mask, high);
    entry->priority = priority;
    entry->sequence = table->next_sequence++;
    set_call(layout, entry, action, data, data_words);

    struct gb_tuple *tuple = gb_tuple_of_mask(&table->tuples, full_mask, words);
    free(full_mask);
    if (!tuple) {
        entry_free(entry);
        return GB_NO_MEMORY;
    }
    entry->tuple = tuple;
    int refusal = gb_tuple_make_room(tuple) ? 0 : GB_NO_MEMORY;
    for (struct gb_entry *other = gb_tuple_lookup(tuple, entry->key, words); other; other = other->next)
        if (same_entry(layout, entry, other))
            refusal = GB_EXISTS;
    if (!refusal && table->entry_count >= layout->max_entries)
        refusal = GB_FULL;
    entry->hash = gb_tuple_hash(tuple, entry->key, words);
    if (!refusal && !tuple_take_entry(table, entry))
        refusal = GB_NO_MEMORY;
    if (refusal) {
        remove_if_empty(table, tuple);
        entry_free(entry);
        return refusal;
    }
    entry->handle = table->free_count ? table->free_handles[--table->free_count] : table->handle_count++;
    table->entries[entry->handle] = entry;
    table->entry_count++;
    table->version = new_version();
    gb_lpm_add(table, entry);
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
    gb_tuple_remove_entry(tuple, entry, table->layout->key_words);
    if (!tuple->hashed)
        gb_rules_remove(&table->rules, table->layout, entry);
    remove_if_empty(table, tuple);
    drop_references(entry);
    table->entries[handle] = NULL;
    table->free_handles[table->free_count++] = (uint32_t)handle;
    table->entry_count--;
    table->version = new_version();
    gb_lpm_remove(table);
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

int gb_table_hit(struct gb_table *table, int64_t handle, uint64_t now_us) {
    struct gb_entry *entry = gb_table_entry(table, handle);
    if (!entry)
        return GB_NO_SUCH;
    entry->last_hit_us = now_us;
    return 0;
}

int gb_table_last_hit(const struct gb_table *table, int64_t handle, uint64_t *last_hit_us) {
    const struct gb_entry *entry = gb_table_entry(table, handle);
    if (!entry)
        return GB_NO_SUCH;
    *last_hit_us = entry->last_hit_us;
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
    struct gb_table *table = gb_lines_alloc(sizeof *table);
    if (!table)
        return NULL;
    table->layout = layout;
    table->version = new_version();
    table->default_entry = entry_create(layout);
    if (!table->default_entry || (layout->match != GB_EXACT && !gb_rules_open(&table->rules, layout))) {
        entry_free(table->default_entry);
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
    gb_rules_free(&table->rules);
    gb_tuples_free(&table->tuples);
    entry_free(table->default_entry);
    free(table->entries);
    free(table->free_handles);
    free_hashed(table);
    free(table->lpm.lengths);
    free(table);
}
