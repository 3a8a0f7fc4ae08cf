/* Consumers of queue pairs: their requests, and their completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/transport/congestion.h"
#include "engine/transport/roce.h"
#include "engine/transport/stream.h"

enum { FIRST_COMPLETIONS = 16 };

/* ---- Completions ---- */

static bool make_room(struct consumer *consumer) {
    if (consumer->count < consumer->capacity)
        return true;
    uint32_t capacity = consumer->capacity ? 2 * consumer->capacity : FIRST_COMPLETIONS;
    struct gb_completion *completions = malloc(capacity * sizeof *completions);
    if (!completions)
        return false;
    for (uint32_t i = 0; i < consumer->count; i++)
        completions[i] = consumer->completions[(consumer->first + i) % consumer->capacity];
    free(consumer->completions);
    consumer->completions = completions;
    consumer->first = 0;
    consumer->capacity = capacity;
    return true;
}

void complete(struct logical_process *lp, struct queue_pair *pair, enum gb_completion_kind kind, uint64_t tag,
              uint64_t size_bytes, void *data) {
    consumer_complete(lp, pair->consumer, kind, pair->options.number, tag, size_bytes, data);
}

void consumer_complete(struct logical_process *lp, struct consumer *consumer, enum gb_completion_kind kind,
                       uint32_t number, uint64_t tag, uint64_t size_bytes, void *data) {
    if (!make_room(consumer))
        abort();                    /* a few kilobytes: whoever waits for it would wait for ever */
    consumer->completions[(consumer->first + consumer->count++) % consumer->capacity] =
        (struct gb_completion){.tag = tag,
                               .size_bytes = size_bytes,
                               .time_ns = lp->now_ns,
                               .data = data,
                               .kind = kind,
                               .pair = number};
    if (kind != GB_COMPLETION_COLLECTIVE_ENDED)
        memory_port_notify(lp, consumer->nic->port);
}

/* ---- Life ---- */

struct consumer *consumer_of(struct gb_engine *engine, uint32_t number) {
    return number < engine->consumer_count ? engine->consumers[number] : NULL;
}

static struct nic *nic_of(struct memory_port *port) {
    if (!port->nic && (port->nic = calloc(1, sizeof *port->nic))) {
        port->nic->port = port;
        port->nic->link = port->io.in;
        port->io.in->nic = port->nic;
    }
    return port->nic;
}

static int open_consumer(struct gb_engine *engine, struct memory_port *port) {
    struct consumer **consumers = realloc(engine->consumers, (engine->consumer_count + 1) * sizeof *consumers);
    if (consumers)
        engine->consumers = consumers;
    struct consumer *consumer = calloc(1, sizeof *consumer);
    struct nic *nic = nic_of(port);
    if (!consumers || !consumer || !nic) {
        free(consumer);
        return -ENOMEM;
    }
    consumer->nic = nic;
    consumer->least_timeout_ns = UINT64_MAX;
    nic->consumers++;
    consumers[engine->consumer_count] = consumer;
    return (int)engine->consumer_count++;
}

int gb_engine_open_consumer(struct gb_engine *engine, uint64_t device_id, uint32_t port) {
    engine_lock_control(&engine->lock);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    int outcome = !memory ? -ENXIO : open_consumer(engine, memory);
    engine_unlock(&engine->lock);
    return outcome;
}

static void close_pair(struct logical_process *lp, struct queue_pair *pair) {
    nic_forget(pair->nic, pair);
    nic_remove(pair->nic, pair);
    sender_close(lp, pair);
    receiver_close(lp, pair);
    free(pair);
}

static void consumer_free(struct consumer *consumer) {
    struct logical_process *lp = consumer->nic->port->lp;
    streams_close(consumer);
    while (consumer->pairs) {
        struct queue_pair *pair = consumer->pairs;
        consumer->pairs = pair->sibling;
        close_pair(lp, pair);
    }
    collectives_close(lp, consumer);
    for (uint32_t i = 0; i < consumer->count; i++)
        free(consumer->completions[(consumer->first + i) % consumer->capacity].data);
    free(consumer->completions);
    consumer->nic->consumers--;
    free(consumer);
}

int gb_engine_close_consumer(struct gb_engine *engine, uint32_t number) {
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer) {
        consumer_free(consumer);
        engine->consumers[number] = NULL;
    }
    engine_unlock(&engine->lock);
    return 0;
}

void consumers_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->consumer_count; i++)
        if (engine->consumers[i])
            consumer_free(engine->consumers[i]);
    free(engine->consumers);
}

/* ---- Silence ---- */

static uint64_t bytes_in_flight(const struct link_direction *channel) {
    uint64_t bytes = 0;
    for (const struct packet *packet = channel->flight.first; packet; packet = packet->next)
        bytes += packet->view.length;
    return bytes;
}

/* The least time in which so many bytes come by that direction. */
static uint64_t shortest_ns(const struct link_direction *to, uint64_t bytes) {
    uint64_t channels = 1 + (uint64_t)to->more_channels, near = bytes_in_flight(to);
    for (uint32_t i = 0; i < to->more_channels; i++)
        near += bytes_in_flight(to->channels[i]);
    if (!to->model->rate_bps || bytes <= near)
        return 0;
    unsigned __int128 bit_ns = (unsigned __int128)8 * 1000000000 * (bytes - near) / channels;
    return (uint64_t)(bit_ns / to->model->rate_bps);
}

static uint64_t silence_ns(const struct consumer *consumer) {
    const struct memory_port *port = consumer->nic->port;
    const struct link_direction *to = engine_device(port->lp->engine, port->device_id)->ports[port->port].out;
    if (consumer->talking || consumer->nearly_failed || consumer->nic->streams || !consumer->nic->link->model->rate_bps)
        return 0;
    uint64_t awaited = collectives_awaited_bytes(consumer), least_ns = consumer->least_timeout_ns;
    if (awaited == UINT64_MAX)
        return least_ns;
    /* What is held may all be taken in with the next packet. */
    uint64_t near = consumer->partial_bytes + consumer->buffered_bytes;
    uint64_t shortest = awaited > near ? shortest_ns(to, awaited - near) : 0;
    return shortest < least_ns ? shortest : least_ns;
}

uint64_t consumers_silence_ns(const struct gb_engine *engine) {
    uint64_t least_ns = UINT64_MAX;
    for (uint32_t i = 0; i < engine->consumer_count && least_ns; i++) {
        uint64_t own_ns = engine->consumers[i] ? silence_ns(engine->consumers[i]) : UINT64_MAX;
        if (own_ns < least_ns)
            least_ns = own_ns;
    }
    return least_ns;
}

/* ---- Pairs ---- */

static bool valid(const struct gb_queue_pair_options *options) {
    const struct congestion_control *control = congestion_control(options->congestion_control);
    return options->number && options->number <= GB_MOST_PAIR_NUMBER && options->peer_number &&
           options->peer_number <= GB_MOST_PAIR_NUMBER && options->mtu_bytes &&
           options->mtu_bytes <= GB_MOST_MTU_BYTES && options->timeout_ns && options->give_up_after &&
           options->acknowledge_every && options->priority < GB_PRIORITIES && options->for_collectives <= 1 &&
           options->recovery <= GB_SELECTIVE_REPEAT && control && (!control->needs_window || options->window_bytes) &&
           (control != &congestion_callback || (options->window_acknowledged && options->window_lost));
}

static int connect_pair(struct consumer *consumer, const struct gb_queue_pair_options *options) {
    uint64_t line_bps = options->rate_bps ? options->rate_bps : consumer->nic->link->model->rate_bps;
    const struct congestion_control *control = congestion_control(options->congestion_control);
    if (control->needs_rate && !line_bps)
        return -ENODATA;
    struct queue_pair *pair = calloc(1, sizeof *pair + control->state_bytes);
    if (!pair)
        return -ENOMEM;
    pair->options = *options;
    pair->congestion = control;
    pair->consumer = consumer;
    int outcome = nic_add(consumer->nic, pair);
    if (outcome < 0) {
        free(pair);
        return outcome;
    }
    pair->sibling = consumer->pairs;
    consumer->pairs = pair;
    consumer->talking += !options->for_collectives;
    consumer->nearly_failed += options->give_up_after == 1;
    if (options->timeout_ns < consumer->least_timeout_ns)
        consumer->least_timeout_ns = options->timeout_ns;
    roce_header(pair);
    sender_open(pair);
    receiver_open(pair);
    congestion_open(pair, line_bps);
    return 0;
}

int gb_engine_connect_pair(struct gb_engine *engine, uint32_t number, const struct gb_queue_pair_options *options) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer && valid(options))
        outcome = connect_pair(consumer, options);
    engine_unlock(&engine->lock);
    return outcome;
}

/* NULL if it is another's. */
static struct queue_pair *own_pair(struct gb_engine *engine, uint32_t number, uint32_t pair_number) {
    struct consumer *consumer = consumer_of(engine, number);
    struct queue_pair *pair = consumer ? nic_pair(consumer->nic, pair_number) : NULL;
    return pair && pair->consumer == consumer ? pair : NULL;
}

int gb_engine_send_message(struct gb_engine *engine, uint32_t number, uint32_t pair_number, uint64_t tag,
                           uint64_t size_bytes, const void *data) {
    int outcome = -ENOENT;
    engine_lock_control(&engine->lock);
    struct queue_pair *pair = own_pair(engine, number, pair_number);
    if (pair && size_bytes > GB_MOST_MESSAGE_BYTES) {
        outcome = -EMSGSIZE;
    } else if (pair) {
        engine_catch_up(engine);
        struct message message = {.tag = tag, .size_bytes = size_bytes, .data = data};
        outcome = sender_add(pair->nic->port->lp, pair, &message);
        engine_wake(engine);
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_completions(struct gb_engine *engine, uint32_t number, struct gb_completion *completions,
                          uint32_t capacity) {
    int count = -EINVAL;
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer) {
        for (count = 0; (uint32_t)count < capacity && consumer->count; count++) {
            completions[count] = consumer->completions[consumer->first];
            consumer->first = (consumer->first + 1) % consumer->capacity;
            consumer->count--;
        }
    }
    engine_unlock(&engine->lock);
    return count;
}

void gb_engine_take_contents(struct gb_engine *engine, void *data, uint64_t size_bytes, void *to) {
    (void)engine;
    if (to)
        memcpy(to, data, size_bytes);
    free(data);
}

/* ---- Counts ---- */

int gb_engine_pair_statistics(struct gb_engine *engine, uint32_t number, uint32_t pair_number,
                              struct gb_queue_pair_statistics *statistics) {
    engine_lock_control(&engine->lock);
    struct queue_pair *pair = own_pair(engine, number, pair_number);
    if (pair) {
        congestion_catch_up(pair, engine->now_ns);
        *statistics = pair->statistics;
        statistics->unacknowledged_bytes = pair->sender.end_byte - pair->sender.una_byte;
        statistics->window_bytes = pair->sender.window_bytes;
        statistics->rate_bps = pair->sender.rate_bps;
    }
    engine_unlock(&engine->lock);
    return pair ? 0 : -ENOENT;
}

int gb_engine_consumer_counts(struct gb_engine *engine, uint32_t number, struct gb_consumer_counts *counts) {
    engine_lock_control(&engine->lock);
    const struct consumer *consumer = consumer_of(engine, number);
    if (consumer) {
        *counts = consumer->counts;
        counts->unknown = consumer->nic->unknown;
    }
    engine_unlock(&engine->lock);
    return consumer ? 0 : -EINVAL;
}
