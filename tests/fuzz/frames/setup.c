#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETS = 8,                       /* multicast groups and clone sessions */
    MEMBERS = 4,                    /* of each action profile, all in group 1 */
    MAX_WORDS = 1024,
};

struct gb_engine *engine;
struct gb_switch *state;
uint64_t random_state;
static uint32_t known_members[MAX_WORDS];

uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

void check(int64_t outcome, const char *what) {
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

void insert_entry(char *at) {
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
    uint64_t data[MAX_WORDS];
    uint32_t profile = (uint32_t)strtoul(at, &at, 10), action = (uint32_t)strtoul(at, &at, 10);
    uint32_t count = words_of(&at, data), members[MEMBERS], watched[MEMBERS], *known = &known_members[profile];
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

bool apply_line(char *line) {
    if (strncmp(line, "default ", 8) == 0)
        set_default(line + 8);
    else if (strncmp(line, "member ", 7) == 0)
        set_member(line + 7);
    else if (strncmp(line, "entry ", 6) == 0)
        insert_entry(line + 6);
    else
        return false;
    return true;
}

void build_switch(uint64_t seed) {
    random_state = seed;
    memset(known_members, 0, sizeof known_members);
    engine = gb_engine_create(1, 1);
    state = gb_switch_create(&gb_program);
    struct gb_switch_options options = {CPU_PORT, GB_PORT_DROP, GB_PRIORITIES, 0, 0};
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

void free_switch(void) {
    gb_engine_free(engine);
    gb_switch_free(state);
}

/* ---- Frames ---- */

/* Most programs check it, and look no further at a packet with a wrong one. */
void mend_ipv4_checksum(uint8_t *frame, uint32_t length) {
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

uint64_t take_all(void) {
    uint64_t frames = 0;
    struct gb_drained drained;
    static uint8_t data[GB_MAX_FRAME_BYTES];
    for (; gb_engine_drain(engine, &drained, data); frames++)
        ;
    struct gb_host_event *host_event;
    while ((host_event = gb_engine_host_event_wait(engine, 0)))
        gb_host_event_free(host_event);
    return frames;
}

uint64_t end_of_frames(void) {
    check(gb_engine_advance(engine, UINT64_C(60000000000), MAX_EVENTS), "packets that never end");
    uint64_t out = take_all();
    struct gb_engine_statistics statistics;
    gb_engine_statistics(engine, &statistics);
    check(statistics.live_packets == 0 ? 0 : -1, "packets that nobody has");
    return out;
}
