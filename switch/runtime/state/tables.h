/* What the files of the tables share: the entries that one mask has in common (tuples), and rules. */
#ifndef GRADBED_STATE_TABLES_H
#define GRADBED_STATE_TABLES_H

#include "state/state.h"

#pragma GCC visibility push(hidden)

static inline uint32_t gb_field_words(const struct gb_key_layout *field) { return (field->width_bits + 63) / 64; }

static inline bool gb_precedes(const struct gb_entry *a, const struct gb_entry *b) {
    return a->priority > b->priority || (a->priority == b->priority && a->sequence < b->sequence);
}

/* The ends of an entry's ranges, as long as the key: of range tables only. */
static inline const uint64_t *gb_low_ends(const struct gb_table_layout *layout, const struct gb_entry *entry) {
    return entry->key + layout->key_words;
}

static inline const uint64_t *gb_high_ends(const struct gb_table_layout *layout, const struct gb_entry *entry) {
    return entry->key + 2 * layout->key_words;
}

bool gb_in_ranges(const struct gb_table_layout *, const struct gb_entry *, const uint64_t *key);

/* ---- Tuples (tuples.c) ---- */

/* The tuple with this mask, made if there is none; NULL when out of memory. */
struct gb_tuple *gb_tuple_of_mask(struct gb_tuple_set *, const uint64_t *mask, uint32_t words);
void gb_tuple_remove(struct gb_tuple_set *, struct gb_tuple *, uint32_t words);
void gb_tuples_free(struct gb_tuple_set *);

/* The entries with this masked key, by falling precedence. */
struct gb_entry *gb_tuple_lookup(const struct gb_tuple *, const uint64_t *key, uint32_t words);
/* Make sure that one more entry has room; false when out of memory. */
bool gb_tuple_make_room(struct gb_tuple *);
uint64_t gb_tuple_hash(const struct gb_tuple *, const uint64_t *key, uint32_t words);
/* The entry knows its tuple and hash. */
void gb_tuple_add_entry(struct gb_tuple *, struct gb_entry *, uint32_t words);
void gb_tuple_remove_entry(struct gb_tuple *, struct gb_entry *, uint32_t words);

/* ---- Prefix lengths (lpm.c) ---- */

/* Make the index of an lpm table. Without memory the table does without. */
void gb_lpm_open(struct gb_table *);
void gb_lpm_add(struct gb_table *, const struct gb_entry *);
/* An entry has been deleted. */
void gb_lpm_remove(struct gb_table *);

/* Where the key's set of lengths is: its first 16 bits, which may lie in two words. */
static inline uint32_t gb_lpm_place(const struct gb_lpm_index *index, const uint64_t *key) {
    uint64_t bits = key[index->word] >> index->shift;
    if (index->shift > 48)
        bits |= key[index->word + 1] << (64 - index->shift);
    return bits & 0xffff;
}

/* ---- Rules (rules.c) ---- */

/* False when out of memory. */
bool gb_rules_add(struct gb_rules *, const struct gb_table_layout *, struct gb_entry *);
void gb_rules_remove(struct gb_rules *, const struct gb_table_layout *, struct gb_entry *);
/* The matching entry that precedes all others and `best` (NULL is preceded by everything); else `best`. */
struct gb_entry *gb_rules_lookup(const struct gb_rules *, const struct gb_table_layout *, const uint64_t *key,
                                 struct gb_entry *best);
/* False when out of memory. */
bool gb_rules_open(struct gb_rules *, const struct gb_table_layout *);
void gb_rules_free(struct gb_rules *);

#pragma GCC visibility pop
#endif
