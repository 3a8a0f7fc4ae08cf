/* One switch with one program in an engine with a manual clock, and random frames through it, for sanitizers.
 *
 * Arguments: seed of the generator, number of frames. Standard input: lines of decimal numbers in front of hexadecimal
 * ones, which set up tables and bring frames to start from:
 *
 *     default TABLE ACTION DATA...
 *     member PROFILE ACTION DATA...
 *     entry TABLE PRIORITY ACTION KEY_WORDS VALUE... MASK... HIGH... DATA...
 *     seed BYTES (two digits each, no spaces)
 *
 * While frames pass, entries are deleted and others come back. Exits with 0 when no frame caused more than MAX_EVENTS
 * events, and every packet has been given back; prints how many frames came out, and what the counters have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "state/state.h"

enum {
    PORTS = 4,
    CPU_PORT = 510,
    SETS = 8,                       /* multicast groups and clone sessions */
    MEMBERS = 4,                    /* of each action profile, all in group 1 */
    MAX_EVENTS = 2000,              /* of one frame: it is in, replicated, cloned, and out */
    TAKEN_TOGETHER = 64,            /* asking for upcalls is a system call */
    CHANGES = 8,                    /* of table entries, as often */
    MAX_SEEDS = 256,
    MAX_ENTRIES = 1 << 16,
    MAX_WORDS = 1024,
    LINE_BYTES = 1 << 16,
};

static struct gb_engine *engine;
static struct gb_switch *state;
static uint64_t random_state;
static uint8_t *seeds[MAX_SEEDS];
static uint32_t lengths[MAX_SEEDS], seed_count;
static char *entries[MAX_ENTRIES];
static uint32_t entry_count;

static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void check(int64_t outcome, const char *what) {
    if (outcome < 0) {
        fprintf(stderr, "%s: %lld\n", what, (long long)outcome);
        exit(1);
    }
}

/* ---- Setting up ---- */

static uint32_t words_of(char **at, uint64_t *words) {
    uint32_t count = 0;
    for (char *end; count < MAX_WORDS; count++, *at = end) {
        words[count] = strtoull(*at, &end, 16);
        if (end == *at)
            break;
    }
    return count;
}

static void set_default(char *at) {
    uint64_t data[MAX_WORDS];
    uint32_t table = (uint32_t)strtoul(at, &at, 10), action = (uint32_t)strtoul(at, &at, 10);
    uint32_t count = words_of(&at, data);
    check(gb_table_modify(state->tables[table], -1, action, data, count), "default");
}

static void insert_entry(char *at) {
    uint64_t words[MAX_WORDS];
    uint32_t table = (uint32_t)strtoul(at, &at, 10);
    int64_t priority = strtoll(at, &at, 10);
    uint32_t action = (uint32_t)strtoul(at, &at, 10), key = (uint32_t)strtoul(at, &at, 10);
    uint32_t count = words_of(&at, words);
    /* Entries are drawn at random: some are there twice. */
    int64_t handle = gb_table_insert(state->tables[table], words, words + key, words + 2 * key, priority, action,
                                     words + 3 * key, count - 3 * key);
    if (handle < 0 || state->program->layout->tables[table].profile < 0)
        return;
    if (draw(2))
        gb_table_set_member(state, table, handle, draw(MEMBERS));
    else
        gb_table_set_group(state, table, handle, 1);
}

static void set_member(char *at) {
    static uint32_t counts[MAX_WORDS];
    uint64_t data[MAX_WORDS];
    uint32_t profile = (uint32_t)strtoul(at, &at, 10), action = (uint32_t)strtoul(at, &at, 10);
    uint32_t count = words_of(&at, data), members[MEMBERS], watched[MEMBERS], *known = &counts[profile];
    if (*known == MEMBERS)
        return;
    check(gb_profile_member_set(state->profiles[profile], *known, action, data, count), "member");
    ++*known;
    for (uint32_t i = 0; i < *known; i++) {
        members[i] = i;
        watched[i] = i % 2 ? 1 + draw(3) : GB_NO_WATCH;
    }
    check(gb_profile_group_set(state->profiles[profile], 1, members, watched, *known), "group");
}

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
        if (strncmp(line, "default ", 8) == 0) {
            set_default(line + 8);
        } else if (strncmp(line, "member ", 7) == 0) {
            set_member(line + 7);
        } else if (strncmp(line, "entry ", 6) == 0) {
            remember_entry(line + 6);
            insert_entry(line + 6);
        } else if (strncmp(line, "seed ", 5) == 0) {
            add_seed(line + 5);
        }
    }
}

static void build(void) {
    struct gb_switch_options options = {CPU_PORT, GB_PORT_DROP, GB_PRIORITIES, 0};
    check(gb_engine_add_switch(engine, 1, &options), "add switch");
    check(gb_engine_load(engine, 1, state), "load");
    check(gb_engine_listen(engine, 1, ~0u), "listen");
    struct gb_link_model model = {.queue_packets = 100};
    for (uint32_t port = 1; port <= PORTS; port++)
        check(gb_engine_add_open_port(engine, 1, port, &model, &model), "open port");
    struct gb_replica replicas[] = {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {CPU_PORT, 4}, {99, 5}};
    for (uint32_t number = 1; number <= SETS; number++) {
        check(gb_engine_multicast_group_set(engine, 1, number, replicas, number % 7), "group");
        check(gb_engine_clone_session_set(engine, 1, number, replicas + number % 5, 1, 20 * number, 0), "session");
    }
}

/* ---- Frames ---- */

/* Most programs check it, and look no further at a packet with a wrong one. */
static void mend_ipv4_checksum(uint8_t *frame, uint32_t length) {
    if (length < 34 || frame[12] != 0x08 || frame[13] != 0x00)
        return;
    uint8_t *header = frame + 14;
    uint32_t sum = 0, bytes = (header[0] & 15u) * 4u;
    if (bytes < 20 || 14 + bytes > length)
        return;
    header[10] = header[11] = 0;
    for (uint32_t i = 0; i < bytes; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    header[10] = (uint8_t)(sum >> 8);
    header[11] = (uint8_t)sum;
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

static uint64_t take_all(void) {
    uint64_t frames = 0;
    struct gb_drained drained;
    static uint8_t data[GB_MAX_FRAME_BYTES];
    for (; gb_engine_drain(engine, &drained, data); frames++)
        ;
    struct gb_upcall *upcall;
    while ((upcall = gb_engine_upcall_wait(engine, 0)))
        gb_upcall_free(upcall);
    return frames;
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    random_state = strtoull(arguments[1], NULL, 10);
    engine = gb_engine_create(1);
    state = gb_switch_create(&gb_program);
    build();
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
    check(gb_engine_advance(engine, UINT64_C(60000000000), MAX_EVENTS), "packets that never end");
    out += take_all();
    struct gb_engine_statistics statistics;
    gb_engine_statistics(engine, &statistics);
    check(statistics.live_packets == 0 ? 0 : -1, "packets that nobody has");
    printf("%llu\n", (unsigned long long)out);
    print_counters();
    gb_engine_free(engine);
    gb_switch_free(state);
    for (uint32_t i = 0; i < seed_count; i++)
        free(seeds[i]);
    for (uint32_t i = 0; i < entry_count; i++)
        free(entries[i]);
    return 0;
}
