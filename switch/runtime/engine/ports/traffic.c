/* Traffic from within: generators of datagrams at ports that end in memory, and sinks that count them.
 *
 * Integers alone, so that a run is the same on every machine: the logarithm of a C library is not.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/random.h"

enum {
    ETHERNET_BYTES = 14,
    ETHER_TYPE_OFFSET = 12,
    IPV4_PROTOCOL_OFFSET = ETHERNET_BYTES + 9,
    IPV4_BYTES = 20,
    UDP_PORT_OFFSET = ETHERNET_BYTES + IPV4_BYTES + 2,
    FRACTION_BITS = 32,
};

/* An IPv4 header without options; the protocol. */
static const uint8_t IPV4_HEADER_BEGINS[] = {0x08, 0x00, 0x45};
static const uint8_t UDP = 17;

static const uint64_t LN_2 = 2977044472;    /* of 2^FRACTION_BITS */

struct generator {
    struct timer timer;
    struct link_direction *link;
    uint64_t sent;
    uint64_t due_ns, fraction;      /* when to send next; fraction: of 2^FRACTION_BITS, or of rate_bps */
    uint64_t mean_pause;            /* of Poisson traffic, in nanoseconds of FRACTION_BITS binary places */
    uint64_t random_state;
    struct gb_generator_options options;
};

/* -log2(number / 2^64), with FRACTION_BITS binary places: by squaring, one place at a time. */
static uint64_t minus_log2(uint64_t number) {
    uint64_t zeros = (uint64_t)__builtin_clzll(number | 1);
    uint64_t x = (number | 1) << zeros, log2 = 0;      /* x / 2^63 is in [1, 2) */
    for (int place = 0; place < FRACTION_BITS; place++) {
        unsigned __int128 square = (unsigned __int128)x * x;
        bool two_or_more = square >> 127;
        log2 = log2 << 1 | two_or_more;
        x = (uint64_t)(square >> (two_or_more ? 64 : 63));
    }
    return ((zeros + 1) << FRACTION_BITS) - log2;
}

static void take_pause(struct generator *generator) {
    const struct gb_generator_options *options = &generator->options;
    if (options->poisson) {
        uint64_t factor = (uint64_t)((unsigned __int128)minus_log2(random_next(&generator->random_state)) * LN_2 >>
                                     FRACTION_BITS);
        uint64_t pause = (uint64_t)((unsigned __int128)factor * generator->mean_pause >> FRACTION_BITS);
        pause += generator->fraction;
        generator->fraction = pause & ((UINT64_C(1) << FRACTION_BITS) - 1);
        generator->due_ns += pause >> FRACTION_BITS;
    } else {
        uint64_t bit_ns = options->frame_bytes * UINT64_C(8000000000) + generator->fraction;
        generator->due_ns += bit_ns / options->rate_bps;
        generator->fraction = bit_ns % options->rate_bps;
    }
}

static void put_64(uint8_t *at, uint64_t value) {
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
}

static void arm(struct logical_process *lp, struct generator *generator) {
    if (generator->sent < generator->options.packets && generator->due_ns < generator->options.stop_ns)
        timer_arm(&lp->timers, &generator->timer, generator->due_ns);
}

static void send_next(struct logical_process *lp, void *owner) {
    struct generator *generator = owner;
    const struct gb_generator_options *options = &generator->options;
    struct packet *packet =
        packet_take_hollow(&lp->pool, lp->pool.headroom_bytes, GB_TRAFFIC_LEAST_BYTES, options->frame_bytes);
    if (packet) {
        uint8_t *data = packet->view.data;
        memcpy(data, options->header, sizeof options->header);
        put_64(data + GB_TRAFFIC_HEADER_BYTES, generator->sent);
        put_64(data + GB_TRAFFIC_HEADER_BYTES + 8, lp->now_ns);
        direction_offer(lp, generator->link, packet);
    }
    generator->sent++;
    take_pause(generator);
    arm(lp, generator);
}

static void prefetch(const void *owner, unsigned step) {
    const struct generator *generator = owner;
    if (step == 0)
        gb_prefetch_line(&generator->options.header);
    else if (step == 1)
        direction_prefetch(generator->link, generator->link->peer_lp);
}

static uint64_t get_64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

bool sink_take(struct sink *sink, const struct packet *packet, uint64_t now_ns) {
    const uint8_t *data = packet->view.data;
    if (packet->view.length < GB_TRAFFIC_LEAST_BYTES ||
        memcmp(data + ETHER_TYPE_OFFSET, IPV4_HEADER_BEGINS, sizeof IPV4_HEADER_BEGINS) != 0 ||
        data[IPV4_PROTOCOL_OFFSET] != UDP)
        return false;
    uint32_t udp_port = (uint32_t)data[UDP_PORT_OFFSET] << 8 | data[UDP_PORT_OFFSET + 1];
    if (sink->udp_port && udp_port != sink->udp_port)
        return false;
    struct gb_sink_statistics *statistics = &sink->statistics;
    uint64_t latency_ns = now_ns - get_64(data + GB_TRAFFIC_HEADER_BYTES + 8);
    uint32_t place = latency_ns ? 64 - (uint32_t)__builtin_clzll(latency_ns) : 0;
    if (statistics->packets++ == 0) {
        statistics->first_ns = now_ns;
        statistics->latency_ns_min = latency_ns;
    }
    statistics->last_ns = now_ns;
    statistics->bytes += packet->view.length;
    statistics->latency_ns_total += latency_ns;
    if (latency_ns < statistics->latency_ns_min)
        statistics->latency_ns_min = latency_ns;
    if (latency_ns > statistics->latency_ns_max)
        statistics->latency_ns_max = latency_ns;
    statistics->latency_counts[place < GB_LATENCY_COUNTS ? place : GB_LATENCY_COUNTS - 1]++;
    return true;
}

/* ---- Control ---- */

static int add_generator(struct gb_engine *engine, struct memory_port *port,
                         const struct gb_generator_options *options) {
    size_t count = engine->generator_count + 1;
    struct generator **generators = realloc(engine->generators, count * sizeof *generators);
    if (generators)
        engine->generators = generators;
    struct generator *generator = calloc(1, sizeof *generator);
    if (!generators || !generator || !lps_reserve(engine, 1)) {
        free(generator);
        return -ENOMEM;
    }
    generators[engine->generator_count++] = generator;
    generator->options = *options;
    generator->link = port->io.in;
    static const struct timer_kind kind = {.fire = send_next, .prefetch = prefetch};
    generator->timer = (struct timer){.kind = &kind, .owner = generator};
    generator->mean_pause = (uint64_t)(((unsigned __int128)options->frame_bytes * 8000000000 << FRACTION_BITS) /
                                       options->rate_bps);
    uint64_t seed = options->seed;
    generator->random_state = random_next(&seed);
    generator->due_ns = options->start_ns > engine->manual_ns ? options->start_ns : engine->manual_ns;
    if (options->poisson)
        take_pause(generator);
    arm(port->io.in->lp, generator);
    return 0;
}

int gb_engine_add_generator(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                            const struct gb_generator_options *options) {
    if (!engine->manual_clock || options->rate_bps == 0 || options->frame_bytes < GB_TRAFFIC_LEAST_BYTES ||
        options->frame_bytes > GB_MAX_FRAME_BYTES)
        return -EINVAL;
    engine_lock_control(&engine->lock);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    int outcome = memory ? add_generator(engine, memory, options) : -ENXIO;
    engine_unlock(&engine->lock);
    return outcome;
}

void generators_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->generator_count; i++)
        free(engine->generators[i]);
    free(engine->generators);
}

int gb_engine_add_sink(struct gb_engine *engine, uint64_t device_id, uint32_t port, uint32_t udp_port) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    if (!memory)
        outcome = -ENXIO;
    else if (memory->sink)
        outcome = -EEXIST;
    else if (!(memory->sink = calloc(1, sizeof *memory->sink)))
        outcome = -ENOMEM;
    else
        memory->sink->udp_port = udp_port;
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_sink_statistics(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                              struct gb_sink_statistics *statistics) {
    engine_lock_control(&engine->lock);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    bool found = memory && memory->sink;
    if (found)
        *statistics = memory->sink->statistics;
    engine_unlock(&engine->lock);
    return found ? 0 : -ENXIO;
}
