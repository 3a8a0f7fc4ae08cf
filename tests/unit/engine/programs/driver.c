/* Random traffic through a small network of "instructed" switches, for sanitizers. Arguments: seed, frames, threads.
 *
 * With threads = 0 the clock is manual; otherwise the data plane has its thread, and this program calls it from as
 * many others. Exits with 0 when every packet has been accounted for and given back.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

enum {
    SWITCHES = 4,
    HOST_PORT = 1,
    LEFT_PORT = 2,
    RIGHT_PORT = 3,
    MEMORY_PORT = 4,
    CPU_PORT = 510,
    MOST_PASSES = 6,
    DIRECTIONS = 6 * SWITCHES,
    INBOX_FRAMES = 8,
};

static struct gb_engine *engine;
static struct gb_switch *states[SWITCHES];
static int inboxes[SWITCHES];
static pthread_mutex_t swapping = PTHREAD_MUTEX_INITIALIZER, capturing = PTHREAD_MUTEX_INITIALIZER;

static uint32_t pick(unsigned *seed, uint32_t count) {
    return (uint32_t)rand_r(seed) % count;
}

static void check(int outcome, const char *what) {
    if (outcome < 0) {
        fprintf(stderr, "%s: %d\n", what, outcome);
        exit(1);
    }
}

static void load(unsigned device) {
    pthread_mutex_lock(&swapping);
    struct gb_switch *fresh = gb_switch_create(&gb_program);
    check(gb_engine_load(engine, device, fresh), "load");
    gb_switch_free(states[device]);
    states[device] = fresh;
    pthread_mutex_unlock(&swapping);
}

static void build(unsigned *seed) {
    for (unsigned device = 0; device < SWITCHES; device++) {
        struct gb_switch_options options = {CPU_PORT, GB_PORT_DROP, 1 + pick(seed, GB_PRIORITIES), 0, 0};
        check(gb_engine_add_switch(engine, device, &options), "add switch");
        load(device);
        check(gb_engine_listen(engine, device, ~0u), "listen");
    }
    for (unsigned device = 0; device < SWITCHES; device++) {
        struct gb_link_model model = {.rate_bps = pick(seed, 2) ? 50000000 : 0,
                                      .delay_ns = pick(seed, 3) * 1000,
                                      .reorder = pick(seed, 2),
                                      .loss_threshold = UINT64_MAX / 20,
                                      .duplicate_threshold = UINT64_MAX / 50,
                                      .seed = pick(seed, 1000),
                                      .queue_packets = 1 + pick(seed, 20)};
        model.jitter_ns = pick(seed, 2) * model.delay_ns;
        check(gb_engine_add_open_port(engine, device, HOST_PORT, &model, &model), "open port");
        check(gb_engine_add_link(engine, device, RIGHT_PORT, (device + 1) % SWITCHES, LEFT_PORT, &model, &model),
              "link");
        check(gb_engine_add_memory_port(engine, device, MEMORY_PORT, &model, &model), "memory port");
        inboxes[device] = gb_engine_open_inbox(engine, device, MEMORY_PORT, pick(seed, 2) * 20000);
        check(inboxes[device], "inbox");
        struct gb_replica replicas[] = {{HOST_PORT, 1}, {LEFT_PORT, 2}, {MEMORY_PORT, 3}, {HOST_PORT, 4}, {99, 5}};
        for (uint32_t number = 1; number < 5; number++) {
            check(gb_engine_multicast_group_set(engine, device, number, replicas, number + 1), "group");
            check(gb_engine_clone_session_set(engine, device, number, replicas, number - 1, 20 * number, 0), "session");
        }
    }
}

/* Start to write what passes a port to nowhere, or end that. */
static void capture(unsigned *seed) {
    static int running = -1;
    uint64_t packets;
    pthread_mutex_lock(&capturing);
    if (running < 0) {
        running = gb_engine_capture_open(engine, open("/dev/null", O_WRONLY), pick(seed, 3));
        check(running, "capture");
        for (uint32_t outwards = 0; outwards < 2; outwards++) {
            struct gb_capture_tap tap = {outwards, pick(seed, 2), outwards, 1 + outwards};
            check(gb_engine_capture_tap(engine, running, pick(seed, SWITCHES), HOST_PORT, &tap), "tap");
        }
        if (pick(seed, 2))
            check(gb_engine_capture_limit(engine, running, pick(seed, 100), pick(seed, 1000000)), "limit");
        check(gb_engine_capture_state(engine, running, &packets), "state of capture");
    } else {
        check(gb_engine_capture_close(engine, running, &packets), "end of capture");
        running = -1;
    }
    pthread_mutex_unlock(&capturing);
}

static void change_link(unsigned *seed) {
    struct gb_link_model model = {.delay_ns = 5000, .jitter_ns = pick(seed, 5000), .reorder = pick(seed, 2),
                                  .rate_bps = pick(seed, 2) * 20000000, .loss_threshold = UINT64_MAX / 20,
                                  .queue_packets = 1 + pick(seed, 9)};
    check(gb_engine_set_link(engine, pick(seed, SWITCHES), HOST_PORT + pick(seed, 3), 1, &model), "set link");
}

/* Datagrams whose first bytes are an instruction: back through the port by which they came. */
static void generate(unsigned *seed) {
    for (unsigned device = 0; device < SWITCHES; device++) {
        struct gb_generator_options options = {.rate_bps = 1000000, .stop_ns = UINT64_C(1000000000), .packets = 500,
                                               .seed = pick(seed, 100), .poisson = device % 2,
                                               .frame_bytes = GB_TRAFFIC_LEAST_BYTES + pick(seed, 1000)};
        options.header[0] = 0;
        options.header[2] = MEMORY_PORT;
        check(gb_engine_add_sink(engine, device, MEMORY_PORT, 0), "sink");
        check(gb_engine_add_generator(engine, device, MEMORY_PORT, &options), "generator");
    }
}

static void run_for(unsigned *seed) {
    struct gb_stop stop;
    uint32_t due[SWITCHES];
    uint64_t until_ns = gb_engine_now(engine) + pick(seed, 200) * 1000;
    do
        check(gb_engine_run_until(engine, until_ns, 1000000, &stop, due, SWITCHES), "run until");
    while (stop.paused);
}

static void open_or_close(unsigned *seed) {
    unsigned device = pick(seed, SWITCHES);
    if (pick(seed, 2))
        gb_engine_close_inbox(engine, (uint32_t)inboxes[device]);
    else {
        uint64_t receive_coalescing_ns = pick(seed, 4) ? pick(seed, 3) * 10000 : GB_NEVER_NOTIFY;
        check(gb_engine_open_inbox(engine, device, MEMORY_PORT, receive_coalescing_ns), "inbox");
    }
}

static void inject(unsigned *seed) {
    static const uint8_t ports[] = {HOST_PORT, LEFT_PORT, RIGHT_PORT, MEMORY_PORT, 99, 254, 255};
    uint8_t frame[GB_MAX_FRAME_BYTES];
    uint32_t passes = pick(seed, MOST_PASSES + 1);
    uint32_t length = passes * 8 + (pick(seed, 20) ? pick(seed, 1500) : pick(seed, GB_MAX_FRAME_BYTES - 100));
    for (uint32_t i = 0; i < length; i++)
        frame[i] = (uint8_t)pick(seed, 256);
    for (uint32_t i = 0; i < passes; i++) {
        frame[i * 8] = (uint8_t)pick(seed, 9);
        frame[i * 8 + 1] = (uint8_t)pick(seed, 7);
        frame[i * 8 + 2] = ports[pick(seed, sizeof ports)];
        frame[i * 8 + 3] = (uint8_t)pick(seed, 10);
        frame[i * 8 + 4] = (uint8_t)pick(seed, 7);
        frame[i * 8 + 5] = (uint8_t)pick(seed, GB_PRIORITIES + 1);
        if (frame[i * 8 + 3] == 6)
            frame[i * 8] = 0;       /* what is kept goes round until the links lose it: it must not multiply */
    }
    uint32_t device = pick(seed, SWITCHES);
    /* Soon, now, or at a time that is over. */
    uint64_t when_ns = gb_engine_now(engine) + pick(seed, 3) * 40000 - 40000;
    if (pick(seed, 3) == 0)
        /* -EINVAL while the inbox is closed. */
        gb_engine_send(engine, (uint32_t)inboxes[device], frame, length, NULL, pick(seed, 2) ? &when_ns : NULL, 1);
    else if (pick(seed, 5))
        check(gb_engine_inject(engine, device, HOST_PORT, frame, length), "inject");
    else
        check(gb_engine_packet_out(engine, device, frame, length), "packet out");
}

static void take_all(void) {
    struct gb_drained drained;
    uint8_t data[GB_MAX_FRAME_BYTES];
    while (gb_engine_drain(engine, &drained, data))
        ;
    for (unsigned device = 0; device < SWITCHES; device++) {
        uint8_t frames[INBOX_FRAMES][512];
        uint32_t lengths[INBOX_FRAMES], longest;
        uint64_t times_ns[INBOX_FRAMES];
        gb_engine_inbox_waiting(engine, (uint32_t)inboxes[device], &longest);
        while (gb_engine_receive(engine, (uint32_t)inboxes[device], frames[0], sizeof frames[0], lengths, times_ns,
                                 INBOX_FRAMES) > 0)
            ;
    }
    struct gb_host_event *host_event;
    while ((host_event = gb_engine_host_event_wait(engine, 0)))
        gb_host_event_free(host_event);
}

static void act(unsigned *seed, int manual) {
    inject(seed);
    uint32_t event = pick(seed, 200);
    struct gb_replica replicas[] = {{HOST_PORT, 1}, {RIGHT_PORT, 2}};
    if (event == 0)
        load(pick(seed, SWITCHES));
    else if (event == 1)
        check(gb_engine_multicast_group_set(engine, pick(seed, SWITCHES), 1, replicas, 2), "group");
    else if (event == 2)
        change_link(seed);
    else if (event < 5)
        capture(seed);
    else if (event == 5)
        check(gb_engine_set_link_up(engine, pick(seed, SWITCHES), HOST_PORT + pick(seed, 3), pick(seed, 3) > 0), "cut");
    else if (event == 6)
        open_or_close(seed);
    else if (event < 20)
        take_all();
    if (manual && pick(seed, 2))
        run_for(seed);
    else if (manual)
        check(gb_engine_advance(engine, pick(seed, 200) * 1000, 1000000), "advance");
}

struct share { unsigned seed, frames; };

static void *run_share(void *argument) {
    struct share *share = argument;
    for (unsigned i = 0; i < share->frames; i++)
        act(&share->seed, 0);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4)
        return 2;
    unsigned seed = (unsigned)atoi(arguments[1]), frames = (unsigned)atoi(arguments[2]);
    unsigned threads = (unsigned)atoi(arguments[3]);
    engine = gb_engine_create(threads == 0, 1);
    build(&seed);
    if (threads == 0) {
        generate(&seed);
        for (unsigned i = 0; i < frames; i++)
            act(&seed, 1);
        check(gb_engine_advance(engine, UINT64_C(60000000000), 100000000), "advance");
    } else {
        pthread_t thread[16];
        struct share share[16];
        check(gb_engine_start(engine), "start");
        for (unsigned i = 0; i < threads; i++) {
            share[i] = (struct share){seed + i, frames / threads};
            pthread_create(&thread[i], NULL, run_share, &share[i]);
        }
        for (unsigned i = 0; i < threads; i++)
            pthread_join(thread[i], NULL);
    }
    check(gb_engine_quiesce(engine, UINT64_C(30000000000)) ? 0 : -1, "quiesce");
    take_all();
    struct gb_engine_statistics statistics;
    gb_engine_statistics(engine, &statistics);
    check(statistics.live_packets == 0 ? 0 : -1, "live packets");
    struct gb_link_statistics links[DIRECTIONS];
    uint32_t rows = gb_engine_link_statistics(engine, links, DIRECTIONS);
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < rows; i++)
        delivered += links[i].packets;
    printf("%u directions delivered %llu packets\n", rows, (unsigned long long)delivered);
    gb_engine_free(engine);
    for (unsigned device = 0; device < SWITCHES; device++)
        gb_switch_free(states[device]);
    return 0;
}
