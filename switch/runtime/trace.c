/* Recording of what instrumented programs do: trace.h says how records look. */
#include <stdlib.h>

#include "trace.h"

#define MAX_WORDS (UINT64_C(1) << 27)       /* 1 GiB */
#define STANDARD_WORDS (sizeof(struct gb_standard_metadata) / sizeof(uint64_t))
enum { REQUEST_WORDS = 9 };
#define NONE UINT64_MAX

struct gb_recorder {
    enum gb_trace_level level;
    uint64_t *words, *shadow;           /* shadow: the state as of the last record that had it */
    uint64_t count, capacity, shadow_capacity, passes;
    uint64_t head;                      /* index of the record being written */
    int lost;
    struct { enum gb_trace_array array; uint32_t number; uint64_t index; } access;
};

static _Thread_local struct gb_recorder *trace;     /* NULL: this thread's packets are not recorded */

/* ---- Records ---- */

static bool make_room(uint64_t more) {
    if (trace->count + more <= trace->capacity)
        return true;
    uint64_t capacity = trace->capacity ? trace->capacity : 1024;
    while (capacity < trace->count + more)
        capacity *= 2;
    uint64_t *words = capacity <= MAX_WORDS ? realloc(trace->words, capacity * sizeof *words) : NULL;
    if (!words) {
        trace->lost = 1;
        return false;
    }
    trace->words = words;
    trace->capacity = capacity;
    return true;
}

static void put(uint64_t word) {
    if (make_room(1))
        trace->words[trace->count++] = word;
}

static void put_words(const uint64_t *words, uint64_t count) {
    if (!count || !make_room(count))
        return;
    memcpy(trace->words + trace->count, words, count * sizeof *words);
    trace->count += count;
}

static void open_record(enum gb_trace_kind kind, uint32_t site) {
    trace->head = trace->count;
    put((uint64_t)site << 32 | (uint64_t)kind << 24);
}

static void close_record(void) {
    /* A record that did not fit is taken back whole. */
    if (trace->lost)
        trace->count = trace->head;
    else
        trace->words[trace->head] |= trace->count - trace->head - 1;
}

static void put_bytes(const uint8_t *bytes, uint32_t length) {
    put(length);
    for (uint32_t at = 0; at < length; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, length - at < 8 ? length - at : 8);
        put(word);
    }
}

/* ---- The state of a packet ---- */

static void request_words(uint64_t *words, const struct gb_requests *r) {
    words[0] = r->clone;
    words[1] = r->resubmit;
    words[2] = r->recirculate;
    words[3] = r->truncate;
    words[4] = r->clone_session;
    words[5] = r->clone_field_list;
    words[6] = r->resubmit_field_list;
    words[7] = r->recirculate_field_list;
    words[8] = r->truncate_length_bytes;
}

static bool shadow_reserve(uint64_t words) {
    if (words <= trace->shadow_capacity)
        return true;
    uint64_t *shadow = realloc(trace->shadow, words * sizeof *shadow);
    if (!shadow) {
        trace->lost = 1;
        return false;
    }
    trace->shadow = shadow;
    trace->shadow_capacity = words;
    return true;
}

/* Write the whole state, and remember it. */
static void put_state(const struct gb_switch *sw, const struct gb_packet *p) {
    uint32_t phv_words = sw->program->phv_words;
    uint64_t first = trace->count, total = STANDARD_WORDS + REQUEST_WORDS + phv_words;
    uint64_t requests[REQUEST_WORDS];
    request_words(requests, &p->pass->requests);
    put_words((const uint64_t *)&p->pass->std, STANDARD_WORDS);
    put_words(requests, REQUEST_WORDS);
    put_words(p->pass->phv, phv_words);
    if (!trace->lost && shadow_reserve(total))
        memcpy(trace->shadow, trace->words + first, total * sizeof *trace->shadow);
}

static void put_differences(const uint64_t *now, uint64_t count, uint64_t first) {
    for (uint64_t i = 0; i < count; i++) {
        if (now[i] == trace->shadow[first + i])
            continue;
        put(first + i);
        put(now[i]);
        trace->shadow[first + i] = now[i];
    }
}

static void put_changes(const struct gb_switch *sw, const struct gb_packet *p) {
    if (trace->level < GB_TRACE_VALUES || trace->lost)
        return;
    uint64_t requests[REQUEST_WORDS];
    request_words(requests, &p->pass->requests);
    put_differences((const uint64_t *)&p->pass->std, STANDARD_WORDS, 0);
    put_differences(requests, REQUEST_WORDS, STANDARD_WORDS);
    put_differences(p->pass->phv, sw->program->phv_words, STANDARD_WORDS + REQUEST_WORDS);
}

/* ---- Entries ---- */

static void put_entry(const struct gb_table *table, const struct gb_entry *entry, const struct gb_call *call) {
    const struct gb_table_layout *layout = table->layout;
    bool matches = entry != table->default_entry;
    put(matches ? entry->handle : NONE);
    put((uint64_t)entry->priority);
    put(entry->member ? entry->member->id : NONE);
    put(entry->group ? entry->group->id : NONE);
    put(entry->count.packets);
    put(entry->count.bytes);
    put(call && call->action != GB_NO_ACTION ? call->action : NONE);
    for (uint32_t i = 0; i < layout->data_words; i++)
        put(call ? call->data[i] : 0);
    for (uint32_t i = 0; i < layout->key_words; i++)
        put(matches ? entry->key[i] : 0);
    for (uint32_t i = 0; i < layout->key_words; i++)
        put(matches ? entry->tuple->mask[i] : 0);
    if (layout->match == GB_RANGE)
        for (uint32_t i = layout->key_words; i < 3 * layout->key_words; i++)
            put(matches ? entry->key[i] : 0);
}

/* ---- Cells of arrays ---- */

static void put_cell(const struct gb_switch *sw) {
    uint64_t index = trace->access.index;
    if (trace->access.array == GB_TRACE_REGISTER) {
        const struct gb_register *cells = &sw->registers[trace->access.number];
        uint64_t first = trace->count;
        for (uint32_t i = 0; i < cells->word_count; i++)
            put(0);
        if (index < cells->size && !trace->lost)
            gb_register_get(cells, (uint32_t)index, 1, trace->words + first);
    } else if (trace->access.array == GB_TRACE_COUNTER) {
        const struct gb_counter *counter = &sw->counters[trace->access.number];
        put(index < counter->size ? counter->cells[index].packets : 0);
        put(index < counter->size ? counter->cells[index].bytes : 0);
    }
}

/* ---- For the reader ---- */

struct gb_recorder *gb_recorder_open(enum gb_trace_level level) {
    struct gb_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder)
        recorder->level = level;
    return recorder;
}

void gb_recorder_close(struct gb_recorder *recorder) {
    free(recorder->words);
    free(recorder->shadow);
    free(recorder);
}

void gb_recorder_use(struct gb_recorder *recorder) {
    trace = recorder;
}

int gb_recorder_used(void) {
    return trace != NULL;
}

const uint64_t *gb_recorder_words(const struct gb_recorder *recorder, uint64_t *count, int *lost) {
    *count = recorder->count;
    *lost = recorder->lost;
    return recorder->words;
}

void gb_recorder_clear(struct gb_recorder *recorder) {
    recorder->count = 0;
    recorder->lost = 0;
}

void gb_recorder_list_entries(struct gb_recorder *recorder, struct gb_switch *sw, uint32_t table_number) {
    const struct gb_table *table = sw->tables[table_number];
    struct gb_recorder *before = trace;
    trace = recorder;
    for (uint32_t handle = 0; handle < table->handle_count && !trace->lost; handle++) {
        const struct gb_entry *entry = table->entries[handle];
        if (!entry)
            continue;
        open_record(GB_TRACE_ENTRY, 0);
        put(table_number);
        put_entry(table, entry, entry->group ? NULL : entry->call);
        close_record();
    }
    trace = before;
}

/* ---- For generated code ---- */

void gb_trace_begin(struct gb_switch *sw, struct gb_packet *p, uint32_t site, uint32_t pass_word, bool of_parser) {
    if (!trace || trace->lost)
        return;
    open_record(GB_TRACE_BEGIN, site);
    uint64_t parent = of_parser ? 0 : p->pass->phv[pass_word];
    p->pass->phv[pass_word] = ++trace->passes;
    put(trace->passes);
    put(parent);
    put((uint64_t)(uintptr_t)p);
    put(p->pass->std.instance_type);
    put((uint64_t)(uintptr_t)sw);
    if (trace->level >= GB_TRACE_VALUES) {
        put_state(sw, p);
        put_bytes(p->data, of_parser ? p->length : 0);
    }
    close_record();
}

void gb_trace_end(struct gb_switch *sw, struct gb_packet *p, uint32_t site, bool with_frame) {
    if (!trace || trace->lost)
        return;
    open_record(GB_TRACE_END, site);
    put((uint64_t)(uintptr_t)p);
    if (trace->level >= GB_TRACE_VALUES) {
        put_state(sw, p);
        put_bytes(p->data, with_frame ? p->length : 0);
    }
    close_record();
}

void gb_trace_step(struct gb_switch *sw, struct gb_packet *p, uint32_t site, uint64_t offset) {
    if (!trace || trace->lost)
        return;
    open_record(GB_TRACE_STEP, site);
    put(offset);
    put_changes(sw, p);
    close_record();
}

void gb_trace_table(struct gb_switch *sw, struct gb_packet *p, uint32_t site, uint32_t table_number,
                    const struct gb_entry *entry, const struct gb_call *call, const uint64_t *key) {
    if (!trace || trace->lost)
        return;
    const struct gb_table *table = sw->tables[table_number];
    open_record(GB_TRACE_TABLE, site);
    put(entry != table->default_entry);
    put_entry(table, entry, call);
    put_words(key, table->layout->key_words);
    put_changes(sw, p);
    close_record();
}

void gb_trace_access(struct gb_switch *sw, uint32_t site, enum gb_trace_array array, uint32_t number, uint64_t index) {
    if (!trace || trace->level < GB_TRACE_VALUES || trace->lost)
        return;
    trace->access.array = array;
    trace->access.number = number;
    trace->access.index = index;
    open_record(GB_TRACE_ACCESS, site);
    put(array);
    put(number);
    put(index);
    put_cell(sw);
    close_record();
}

void gb_trace_accessed(struct gb_switch *sw, uint32_t site) {
    if (!trace || trace->level < GB_TRACE_VALUES || trace->lost)
        return;
    open_record(GB_TRACE_CELL, site);
    put_cell(sw);
    close_record();
}
