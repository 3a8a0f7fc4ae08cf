/* Random frames through a switch (setup.h), for sanitizers.
 *
 * Arguments: seed of the generator, number of frames. Standard input: lines that set up tables, and frames to start from:
 *
 *     seed BYTES (two digits each, no spaces)
 *
 * While frames pass, entries are deleted and others come back. Exits with 0 when no frame caused more than MAX_EVENTS
 * events, and every packet has been given back; prints how many frames came out, and what the counters have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "setup.h"

enum {
    TAKEN_TOGETHER = 64,            /* asking for host events is a system call */
    CHANGES = 8,                    /* of table entries, as often */
    MAX_SEEDS = 256,
    MAX_ENTRIES = 1 << 16,
};

static uint8_t *seeds[MAX_SEEDS];
static uint32_t lengths[MAX_SEEDS], seed_count;
static char *entries[MAX_ENTRIES];
static uint32_t entry_count;

static void remember_entry(const char *at) {
    if (entry_count < MAX_ENTRIES)
        entries[entry_count++] = strdup(at);
}

static void change_tables(void) {
    const struct gb_layout *layout = state->program->layout;
    if (entry_count == 0)
        return;
    bool grow = draw(2);
    for (uint32_t i = 0; i < CHANGES; i++)
        if (grow)
            insert_entry(entries[draw(entry_count)]);
        else
            gb_table_delete(state->tables[draw(layout->table_count)], draw(entry_count));
}

static void add_seed(const char *at) {
    uint32_t length = (uint32_t)strcspn(at, "\n") / 2;
    uint8_t *frame = malloc(length ? length : 1);
    for (uint32_t i = 0; i < length; i++)
        sscanf(at + 2 * i, "%2hhx", &frame[i]);
    if (seed_count < MAX_SEEDS) {
        lengths[seed_count] = length;
        seeds[seed_count++] = frame;
    } else {
        free(frame);
    }
}

static void read_input(void) {
    static char line[LINE_BYTES];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "seed ", 5) == 0)
            add_seed(line + 5);
        else if (apply_line(line) && strncmp(line, "entry ", 6) == 0)
            remember_entry(line + 6);
    }
}

static uint32_t make_frame(uint8_t *frame) {
    uint32_t seed = draw(seed_count), length = lengths[seed];
    memcpy(frame, seeds[seed], length);
    uint32_t event = draw(16);
    if (event == 0)
        length = draw(length + 1);
    else if (event == 1)
        for (uint32_t more = draw(event == draw(64) ? GB_MAX_FRAME_BYTES - length : 64); more > 0; more--)
            frame[length++] = (uint8_t)draw(256);
    for (uint32_t changes = draw(3) ? draw(3) : draw(32); changes > 0 && length > 0; changes--) {
        uint32_t at = draw(4) ? draw(length < 128 ? length : 128) : draw(length);
        frame[at] = draw(3) ? (uint8_t)(frame[at] ^ 1u << draw(8)) : (uint8_t)draw(256);
    }
    if (draw(4))
        mend_ipv4_checksum(frame, length);
    return length;
}

/* Packets, by the names of the program's counters. */
static void print_counters(void) {
    for (uint32_t i = 0; i < state->program->layout->counter_count; i++) {
        const struct gb_counter_layout *counter = &state->program->layout->counters[i];
        uint64_t packets = 0;
        for (uint32_t index = 0; index < counter->size; index++) {
            struct gb_count cell;
            check(gb_counter_get(&state->counters[i], index, 1, &cell), "counter");
            packets += cell.packets;
        }
        printf("%s %llu\n", counter->name, (unsigned long long)packets);
    }
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    build_switch(strtoull(arguments[1], NULL, 10));
    read_input();
    if (seed_count == 0)
        return 2;
    uint64_t out = 0;
    static uint8_t frame[2 * GB_MAX_FRAME_BYTES];
    for (long left = strtol(arguments[2], NULL, 10); left > 0; left--) {
        uint32_t length = make_frame(frame);
        if (draw(16))
            check(gb_engine_inject(engine, 1, 1 + draw(PORTS), frame, length), "inject");
        else
            check(gb_engine_packet_out(engine, 1, frame, length), "packet out");
        check(gb_engine_advance(engine, 1 + draw(2000000), MAX_EVENTS), "more events than a frame may cause");
        if (left % TAKEN_TOGETHER == 0) {
            out += take_all();
            change_tables();
        }
    }
    out += end_of_frames();
    printf("%llu\n", (unsigned long long)out);
    print_counters();
    free_switch();
    for (uint32_t i = 0; i < seed_count; i++)
        free(seeds[i]);
    for (uint32_t i = 0; i < entry_count; i++)
        free(entries[i]);
    return 0;
}
