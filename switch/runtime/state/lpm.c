/* Which prefix lengths can match: for each value of a key's first 16 bits, a set of the lengths of the prefixes that
 * agree with it. With a hundred thousand routes a look-up then tries one or two lengths instead of all.
 *
 * Lengths that are 64 apart share a bit, and bits of deleted prefixes stay until as many were deleted as are left: a set
 * may name too many lengths, never too few.
 */
#include <stdlib.h>

#include "state/tables.h"

enum { INDEX_BITS = 16, INDEX_SIZE = 1 << INDEX_BITS };

static void add_entry(struct gb_lpm_index *index, const struct gb_entry *entry) {
    uint32_t length = (uint32_t)entry->priority;
    uint32_t first = gb_lpm_place(index, entry->key);
    /* Shorter prefixes agree with a run of values. */
    uint32_t count = length < INDEX_BITS ? 1u << (INDEX_BITS - length) : 1;
    for (uint32_t i = 0; i < count; i++)
        index->lengths[first + i] |= UINT64_C(1) << length % 64;
}

static void add_all(struct gb_table *table) {
    for (uint32_t i = 0; i < table->handle_count; i++)
        if (table->entries[i])
            add_entry(&table->lpm, table->entries[i]);
    table->lpm.deleted = 0;
}

void gb_lpm_open(struct gb_table *table) {
    const struct gb_table_layout *layout = table->layout;
    uint32_t word = 0;
    for (uint32_t i = 0; i < layout->key_field_count; word += gb_field_words(&layout->key[i++])) {
        uint32_t width = layout->key[i].width_bits;
        if (layout->key[i].match != GB_LPM || width < INDEX_BITS)
            continue;
        uint32_t low = width - INDEX_BITS;
        table->lpm = (struct gb_lpm_index){
            .lengths = calloc(INDEX_SIZE, sizeof(uint64_t)), .word = word + low / 64, .shift = low % 64};
        if (table->lpm.lengths)
            add_all(table);
        return;
    }
}

void gb_lpm_add(struct gb_table *table, const struct gb_entry *entry) {
    if (table->lpm.lengths)
        add_entry(&table->lpm, entry);
}

void gb_lpm_remove(struct gb_table *table) {
    if (!table->lpm.lengths || ++table->lpm.deleted <= table->entry_count)
        return;
    memset(table->lpm.lengths, 0, INDEX_SIZE * sizeof *table->lpm.lengths);
    add_all(table);
}
