/* Tuples: all entries of a table that have one mask, hashed by masked key (tuple space search: Srinivasan, Suri,
 * Varghese, SIGCOMM 1999). The tuples of a table are hashed by mask.
 */
#include <stdlib.h>

#include "state/tables.h"

enum { FIRST_SLOTS = 8, FIRST_BUCKETS = 4 };

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

/* What a slot shows of a key with that hash. */
static inline uint64_t tag_of(uint64_t hash, const uint64_t *key, const uint64_t *mask, uint32_t words) {
    return words == 1 ? key[0] & mask[0] : hash;
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
    uint64_t tag = tag_of(hash, key, tuple->mask, words);
    for (uint32_t at = (uint32_t)hash & (tuple->capacity - 1);; at = (at + 1) & (tuple->capacity - 1)) {
        struct gb_slot *slot = &tuple->slots[at];
        if (!slot->entry ||
            (slot->tag == tag && (words == 1 || same_masked(slot->entry->key, key, tuple->mask, words))))
            return slot;
    }
}

uint64_t gb_tuple_hash(const struct gb_tuple *tuple, const uint64_t *key, uint32_t words) {
    return hash_masked(key, tuple->mask, words);
}

struct gb_entry *gb_tuple_lookup(const struct gb_tuple *tuple, const uint64_t *key, uint32_t words) {
    return find_slot(tuple, hash_masked(key, tuple->mask, words), key, words)->entry;
}

/* ---- Entries of a tuple ---- */

bool gb_tuple_make_room(struct gb_tuple *tuple) {
    if ((tuple->used + 1) * 4 <= tuple->capacity * 3)
        return true;
    uint32_t capacity = tuple->capacity * 2;
    struct gb_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < tuple->capacity; i++) {
        if (!tuple->slots[i].entry)
            continue;
        uint32_t at = (uint32_t)tuple->slots[i].entry->hash & (capacity - 1);
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
static void remove_slot(struct gb_tuple *tuple, struct gb_slot *slot) {
    uint32_t last = tuple->capacity - 1, gap = (uint32_t)(slot - tuple->slots);
    for (uint32_t at = (gap + 1) & last; tuple->slots[at].entry; at = (at + 1) & last) {
        uint32_t home = (uint32_t)tuple->slots[at].entry->hash & last;
        if (((at - home) & last) >= ((at - gap) & last)) {
            tuple->slots[gap] = tuple->slots[at];
            gap = at;
        }
    }
    tuple->slots[gap] = (struct gb_slot){0, NULL};
    tuple->used--;
}

void gb_tuple_add_entry(struct gb_tuple *tuple, struct gb_entry *entry, uint32_t words) {
    struct gb_slot *slot = find_slot(tuple, entry->hash, entry->key, words);
    if (!slot->entry) {
        tuple->used++;
        slot->tag = tag_of(entry->hash, entry->key, tuple->mask, words);
    }
    struct gb_entry **link = &slot->entry;
    while (*link && gb_precedes(*link, entry))
        link = &(*link)->next;
    entry->next = *link;
    *link = entry;
    tuple->entry_count++;
}

void gb_tuple_remove_entry(struct gb_tuple *tuple, struct gb_entry *entry, uint32_t words) {
    struct gb_slot *slot = find_slot(tuple, entry->hash, entry->key, words);
    struct gb_entry **link = &slot->entry;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    if (!slot->entry)
        remove_slot(tuple, slot);
    tuple->entry_count--;
}

/* ---- The tuples of a table ---- */

static uint64_t hash_mask(const uint64_t *mask, uint32_t words) { return hash_masked(mask, mask, words); }

static struct gb_tuple **bucket(const struct gb_tuple_set *set, uint64_t hash) {
    return &set->buckets[(uint32_t)hash & (set->bucket_count - 1)];
}

static bool double_buckets(struct gb_tuple_set *set, uint32_t words) {
    struct gb_tuple_set grown = {.bucket_count = set->bucket_count ? set->bucket_count * 2 : FIRST_BUCKETS,
                                 .count = set->count};
    grown.buckets = calloc(grown.bucket_count, sizeof(struct gb_tuple *));
    if (!grown.buckets)
        return false;
    for (uint32_t i = 0; i < set->bucket_count; i++)
        for (struct gb_tuple *tuple = set->buckets[i], *next; tuple; tuple = next) {
            struct gb_tuple **link = bucket(&grown, hash_mask(tuple->mask, words));
            next = tuple->next;
            tuple->next = *link;
            *link = tuple;
        }
    free(set->buckets);
    *set = grown;
    return true;
}

static void tuple_free(struct gb_tuple *tuple) {
    free(tuple->slots);
    free(tuple);
}

static struct gb_tuple *tuple_create(const uint64_t *mask, uint32_t words) {
    struct gb_tuple *tuple = calloc(1, sizeof *tuple + words * sizeof *mask);
    if (!tuple)
        return NULL;
    tuple->slots = calloc(FIRST_SLOTS, sizeof *tuple->slots);
    if (!tuple->slots) {
        tuple_free(tuple);
        return NULL;
    }
    memcpy(tuple->mask, mask, words * sizeof *mask);
    tuple->capacity = FIRST_SLOTS;
    tuple->best_priority = INT64_MIN;
    return tuple;
}

struct gb_tuple *gb_tuple_of_mask(struct gb_tuple_set *set, const uint64_t *mask, uint32_t words) {
    uint64_t hash = hash_mask(mask, words);
    if (set->bucket_count)
        for (struct gb_tuple *tuple = *bucket(set, hash); tuple; tuple = tuple->next)
            if (memcmp(tuple->mask, mask, words * sizeof *mask) == 0)
                return tuple;
    if (set->count == set->bucket_count && !double_buckets(set, words))
        return NULL;
    struct gb_tuple *tuple = tuple_create(mask, words);
    if (tuple) {
        struct gb_tuple **link = bucket(set, hash);
        tuple->next = *link;
        *link = tuple;
        set->count++;
    }
    return tuple;
}

void gb_tuple_remove(struct gb_tuple_set *set, struct gb_tuple *tuple, uint32_t words) {
    struct gb_tuple **link = bucket(set, hash_mask(tuple->mask, words));
    while (*link != tuple)
        link = &(*link)->next;
    *link = tuple->next;
    set->count--;
    tuple_free(tuple);
}

void gb_tuples_free(struct gb_tuple_set *set) {
    for (uint32_t i = 0; i < set->bucket_count; i++)
        for (struct gb_tuple *tuple = set->buckets[i], *next; tuple; tuple = next) {
            next = tuple->next;
            tuple_free(tuple);
        }
    free(set->buckets);
}
