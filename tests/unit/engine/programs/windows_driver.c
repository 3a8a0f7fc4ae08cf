/* Generators' traffic through a ring of "instructed" switches, for sanitizers. Arguments: seed, LPs.
 *
 * With more than one LP they are worked on side by side. Prints what every link and switch counted, which does not
 * depend on the LPs; exits with 0 when every packet has been given back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

enum {
    SWITCHES = 6,
    HOST_PORT = 1,
    LEFT_PORT = 2,
    RIGHT_PORT = 3,
    PASSES = 5,                     /* the generators' headers begin with so many instructions */
    GENERATORS = 3,                 /* at each switch */
    DIRECTIONS = 4 * SWITCHES,
    STRETCHES = 5,
};

static struct gb_engine *engine;
static struct gb_switch *states[SWITCHES];

static uint32_t pick(unsigned *seed, uint32_t count) {
    return (uint32_t)rand_r(seed) % count;
}

static void check(int outcome, const char *what) {
    if (outcome < 0) {
        fprintf(stderr, "%s: %d\n", what, outcome);
        exit(1);
    }
}

static struct gb_link_model link_at_random(unsigned *seed) {
    struct gb_link_model model = {
        .rate_bps = 100000000 * (1 + pick(seed, 3)),
        .delay_ns = 2000 + 1000 * pick(seed, 2),
        .jitter_ns = pick(seed, 2) * 500,
        .reorder = pick(seed, 2),
        .loss_threshold = pick(seed, 2) * (UINT64_MAX / 30),
        .duplicate_threshold = pick(seed, 2) * (UINT64_MAX / 30),
        .bit_error_rate = pick(seed, 2) * 1e-5,
        .queue_packets = 10,
        .seed = pick(seed, 1000),
    };
    return model;
}

static void build(unsigned *seed, uint32_t partitions) {
    struct gb_replica replicas[] = {{HOST_PORT, 1}, {RIGHT_PORT, 2}, {LEFT_PORT, 3}};
    for (uint32_t device = 0; device < SWITCHES; device++) {
        struct gb_switch_options options = {GB_NO_PORT, GB_PORT_DROP, GB_PRIORITIES, 0, device * partitions / SWITCHES};
        check(gb_engine_add_switch(engine, device, &options), "add switch");
        states[device] = gb_switch_create(&gb_program);
        check(gb_engine_load(engine, device, states[device]), "load");
        check(gb_engine_multicast_group_set(engine, device, 1, replicas, 3), "group");
        check(gb_engine_clone_session_set(engine, device, 1, replicas, 2, 0, 0), "session");
        struct gb_link_model model = link_at_random(seed);
        check(gb_engine_add_memory_port(engine, device, HOST_PORT, &model, &model), "host");
    }
    for (uint32_t device = 0; device < SWITCHES; device++) {
        struct gb_link_model model = link_at_random(seed);
        check(gb_engine_add_link(engine, device, RIGHT_PORT, (device + 1) % SWITCHES, LEFT_PORT, &model, &model), "link");
    }
}

static void generate(unsigned *seed, uint32_t device) {
    static const uint8_t ports[] = {HOST_PORT, LEFT_PORT, RIGHT_PORT, LEFT_PORT, RIGHT_PORT, 99};
    struct gb_generator_options options = {
        .rate_bps = 20000000 + pick(seed, 100000000),
        .stop_ns = 3000000,
        .packets = UINT64_MAX,
        .seed = pick(seed, 1000),
        .frame_bytes = 60 + pick(seed, 1000),
        .poisson = pick(seed, 2),
    };
    for (uint32_t i = 0; i < PASSES; i++) {
        uint8_t *instruction = options.header + i * 8;
        instruction[0] = (uint8_t)(pick(seed, 3) ? 0 : pick(seed, 6));
        instruction[1] = (uint8_t)pick(seed, 3);
        instruction[2] = ports[pick(seed, sizeof ports)];
        instruction[3] = (uint8_t)(pick(seed, 3) ? 0 : pick(seed, 4));
        instruction[4] = (uint8_t)pick(seed, 3);
        instruction[5] = (uint8_t)pick(seed, GB_PRIORITIES);
    }
    check(gb_engine_add_generator(engine, device, HOST_PORT, &options), "generator");
}

static void print_counts(void) {
    struct gb_link_statistics links[DIRECTIONS];
    uint32_t rows = gb_engine_link_statistics(engine, links, DIRECTIONS);
    for (uint32_t i = 0; i < rows; i++)
        printf("link %llu:%llu %llu packets %llu bytes %llu lost %llu dropped %llu twice\n",
               (unsigned long long)links[i].device_id, (unsigned long long)links[i].port,
               (unsigned long long)links[i].packets, (unsigned long long)links[i].bytes,
               (unsigned long long)links[i].losses, (unsigned long long)links[i].queue_drops,
               (unsigned long long)links[i].duplicates);
    for (uint32_t device = 0; device < SWITCHES; device++) {
        struct gb_device_statistics counts;
        check(gb_engine_device_statistics(engine, device, &counts), "counts");
        printf("switch %u %llu received %llu cloned %llu replicated\n", device, (unsigned long long)counts.received,
               (unsigned long long)counts.cloned, (unsigned long long)counts.replicated);
    }
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    unsigned seed = (unsigned)atoi(arguments[1]);
    uint32_t partitions = (uint32_t)atoi(arguments[2]);
    engine = gb_engine_create(1, partitions);
    gb_engine_set_lookahead_windows(engine, 3, 0);
    build(&seed, partitions);
    for (uint32_t i = 0; i < GENERATORS * SWITCHES; i++)
        generate(&seed, i % SWITCHES);
    struct gb_stop stop;
    for (uint64_t i = 1; i <= STRETCHES; i++) {
        uint64_t until_ns = i < STRETCHES ? i * 700000 : UINT64_MAX;
        do
            check(gb_engine_run_until(engine, until_ns, 1000000, &stop, NULL, 0), "run");
        while (stop.paused);
        struct gb_link_model model = link_at_random(&seed);
        check(gb_engine_set_link(engine, pick(&seed, SWITCHES), RIGHT_PORT, 1, &model), "link");
        check(gb_engine_set_link_up(engine, pick(&seed, SWITCHES), RIGHT_PORT, pick(&seed, 2)), "cut");
        print_counts();
    }
    struct gb_engine_statistics statistics;
    gb_engine_statistics(engine, &statistics);
    check(stop.idle && statistics.live_packets == 0 ? 0 : -1, "live packets");
    gb_engine_free(engine);
    for (uint32_t device = 0; device < SWITCHES; device++)
        gb_switch_free(states[device]);
    return 0;
}
