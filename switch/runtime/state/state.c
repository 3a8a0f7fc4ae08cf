/* Making and freeing a switch's state; registers, value sets and random numbers. */
#include "state/state.h"

#include <stdlib.h>

static uint32_t words_of(uint32_t width_bits) { return (width_bits + 63) / 64; }

static size_t cell_bytes(uint32_t width_bits) {
    return width_bits <= 8 ? 1 : width_bits <= 16 ? 2 : width_bits <= 32 ? 4 : 8 * (size_t)words_of(width_bits);
}

static void *array(uint32_t count, size_t size) { return calloc(count ? count : 1, size); }

static bool create_arrays(struct gb_switch *sw, const struct gb_layout *layout) {
    for (uint32_t i = 0; i < layout->register_count; i++) {
        const struct gb_register_layout *wanted = &layout->registers[i];
        void *cells = array(wanted->size, cell_bytes(wanted->width_bits));
        sw->registers[i] =
            (struct gb_register){wanted->width_bits, wanted->size, words_of(wanted->width_bits), cells};
        if (!cells)
            return false;
    }
    for (uint32_t i = 0; i < layout->counter_count; i++) {
        sw->counters[i].size = layout->counters[i].size;
        if (!(sw->counters[i].cells = array(layout->counters[i].size, sizeof(struct gb_count))))
            return false;
    }
    for (uint32_t i = 0; i < layout->meter_count; i++) {
        if (!(sw->meters[i] = calloc(1, sizeof *sw->meters[i])))
            return false;
        sw->meters[i]->unit = layout->meters[i].unit;
        sw->meters[i]->size = layout->meters[i].size;
        if (!(sw->meters[i]->cells = array(layout->meters[i].size, sizeof(struct gb_meter_cell))))
            return false;
    }
    return true;
}

static bool create_objects(struct gb_switch *sw, const struct gb_layout *layout) {
    for (uint32_t i = 0; i < layout->table_count; i++) {
        if (!(sw->tables[i] = gb_table_create(&layout->tables[i])))
            return false;
        if (layout->tables[i].recent >= 0)
            sw->recent_tables[layout->tables[i].recent] = sw->tables[i];
    }
    for (uint32_t i = 0; i < layout->profile_count; i++)
        if (!(sw->profiles[i] = gb_profile_create(&layout->profiles[i])))
            return false;
    for (uint32_t i = 0; i < layout->value_set_count; i++) {
        if (!(sw->value_sets[i] = calloc(1, sizeof *sw->value_sets[i])))
            return false;
        sw->value_sets[i]->layout = &layout->value_sets[i];
    }
    for (uint32_t i = 0; i < layout->extern_count; i++)
        if (!(sw->externs[i] = layout->externs[i].kind->create(layout->externs[i].attributes)))
            return false;
    return true;
}

struct gb_switch *gb_switch_create(const struct gb_program *program) {
    const struct gb_layout *layout = program->layout;
    struct gb_switch *sw = gb_lines_alloc(sizeof *sw);
    if (!sw)
        return NULL;
    sw->program = program;
    sw->recents = sw->own_recents;
    sw->random_state = UINT64_C(0x853c49e6748fea9b);
    sw->drop_port = GB_PORT_DROP;
    sw->tables = array(layout->table_count, sizeof *sw->tables);
    sw->registers = array(layout->register_count, sizeof *sw->registers);
    sw->counters = array(layout->counter_count, sizeof *sw->counters);
    sw->meters = array(layout->meter_count, sizeof *sw->meters);
    sw->value_sets = array(layout->value_set_count, sizeof *sw->value_sets);
    sw->profiles = array(layout->profile_count, sizeof *sw->profiles);
    sw->externs = array(layout->extern_count, sizeof *sw->externs);
    sw->drop_counts = array(layout->drop_site_count, sizeof *sw->drop_counts);
    if (!sw->tables || !sw->registers || !sw->counters || !sw->meters || !sw->value_sets || !sw->profiles ||
        !sw->externs || !sw->drop_counts || !create_arrays(sw, layout) || !create_objects(sw, layout)) {
        gb_switch_free(sw);
        return NULL;
    }
    return sw;
}

void gb_switch_free(struct gb_switch *sw) {
    if (!sw)
        return;
    const struct gb_layout *layout = sw->program->layout;
    for (uint32_t i = 0; sw->tables && i < layout->table_count; i++)
        gb_table_free(sw->tables[i]);
    for (uint32_t i = 0; sw->registers && i < layout->register_count; i++)
        free(sw->registers[i].cells);
    for (uint32_t i = 0; sw->counters && i < layout->counter_count; i++)
        free(sw->counters[i].cells);
    for (uint32_t i = 0; sw->meters && i < layout->meter_count; i++)
        if (sw->meters[i]) {
            free(sw->meters[i]->cells);
            free(sw->meters[i]);
        }
    for (uint32_t i = 0; sw->value_sets && i < layout->value_set_count; i++)
        if (sw->value_sets[i]) {
            free(sw->value_sets[i]->values);
            free(sw->value_sets[i]->masks);
            free(sw->value_sets[i]);
        }
    for (uint32_t i = 0; sw->profiles && i < layout->profile_count; i++)
        gb_profile_free(sw->profiles[i]);
    for (uint32_t i = 0; sw->externs && i < layout->extern_count; i++)
        if (sw->externs[i])
            layout->externs[i].kind->free(sw->externs[i]);
    free(sw->drop_counts);
    free(sw->tables);
    free(sw->registers);
    free(sw->counters);
    free(sw->meters);
    free(sw->value_sets);
    free(sw->profiles);
    free(sw->externs);
    free(sw);
}

/* ---- Counters and registers, for the control plane ---- */

int gb_counter_get(const struct gb_counter *counter, uint32_t first, uint32_t count, struct gb_count *counts) {
    if (first > counter->size || count > counter->size - first)
        return GB_NO_SUCH;
    memcpy(counts, counter->cells + first, count * sizeof *counts);
    return 0;
}

int gb_counter_set(struct gb_counter *counter, uint32_t index, const struct gb_count *count) {
    if (index >= counter->size)
        return GB_NO_SUCH;
    counter->cells[index] = *count;
    return 0;
}

int gb_register_get(const struct gb_register *reg, uint32_t first, uint32_t count, uint64_t *words) {
    if (first > reg->size || count > reg->size - first)
        return GB_NO_SUCH;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t index = (uint64_t)first + i;
        switch (cell_bytes(reg->width_bits)) {
        case 1: words[i] = gb_register_read8(reg, index); break;
        case 2: words[i] = gb_register_read16(reg, index); break;
        case 4: words[i] = gb_register_read32(reg, index); break;
        default: gb_register_read_wide(words + (size_t)i * reg->word_count, reg, index);
        }
    }
    return 0;
}

int gb_register_set(struct gb_register *reg, uint32_t index, const uint64_t *words) {
    if (index >= reg->size)
        return GB_NO_SUCH;
    switch (cell_bytes(reg->width_bits)) {
    case 1: gb_register_write8(reg, index, words[0]); break;
    case 2: gb_register_write16(reg, index, words[0]); break;
    case 4: gb_register_write32(reg, index, words[0]); break;
    default: gb_register_write_wide(reg, index, words);
    }
    return 0;
}

/* ---- Value sets ---- */

static bool contains(const struct gb_value_set *set, const uint64_t *value, const uint64_t *considered) {
    uint32_t words = words_of(set->layout->width_bits);
    for (uint32_t i = 0; i < set->count; i++) {
        const uint64_t *wanted = set->values + (size_t)i * words, *mask = set->masks + (size_t)i * words;
        uint64_t difference = 0;
        for (uint32_t j = 0; j < words; j++)
            difference |= (value[j] ^ wanted[j]) & mask[j] & (considered ? considered[j] : ~UINT64_C(0));
        if (!difference)
            return true;
    }
    return false;
}

bool gb_value_set_contains(const struct gb_value_set *set, const uint64_t *value) {
    return contains(set, value, NULL);
}

bool gb_value_set_contains_masked(const struct gb_value_set *set, const uint64_t *value, const uint64_t *mask) {
    return contains(set, value, mask);
}

int gb_value_set_replace(struct gb_value_set *set, uint32_t count, const uint64_t *values, const uint64_t *masks) {
    size_t bytes = (size_t)count * words_of(set->layout->width_bits) * sizeof *values;
    uint64_t *new_values = malloc(bytes ? bytes : 1), *new_masks = malloc(bytes ? bytes : 1);
    if (!new_values || !new_masks) {
        free(new_values);
        free(new_masks);
        return GB_NO_MEMORY;
    }
    memcpy(new_values, values, bytes);
    memcpy(new_masks, masks, bytes);
    free(set->values);
    free(set->masks);
    set->values = new_values;
    set->masks = new_masks;
    set->count = count;
    return 0;
}

/* ---- Random numbers ---- */

uint64_t gb_random_between(struct gb_switch *sw, uint64_t low, uint64_t high) {
    if (high <= low)
        return low;
    uint64_t span = high - low + 1;
    if (span == 0)
        return gb_random(sw);
    /* Rejecting the first 2^64 mod span values leaves a multiple of span. */
    uint64_t first = -span % span, drawn;
    do
        drawn = gb_random(sw);
    while (drawn < first);
    return low + drawn % span;
}
