/* Streams of fragments: how they begin, what they are given, and how they end. */
#include <errno.h>
#include <stdlib.h>

#include "engine/transport/pair.h"
#include "engine/transport/stream.h"

#define LONGEST_TIMEOUT_NS 3600000000000u     /* a thousand of them still fit into 64 bits */

static struct logical_process *part_of(const struct stream *stream) {
    return stream->consumer->nic->port->lp;
}

static void stream_free(struct stream *stream) {
    struct logical_process *lp = part_of(stream);
    timer_stop(&lp->timers, &stream->timeout);
    list_free(&lp->pool, &stream->early);
    while (stream->first) {
        struct vector *next = stream->first->next;
        free(stream->first);
        stream->first = next;
    }
    free(stream->fragments);
    free(stream->sums);
    free(stream);
}

void streams_close(struct consumer *consumer) {
    struct stream **at = &consumer->nic->streams;
    while (*at) {
        struct stream *stream = *at;
        if (stream->consumer == consumer) {
            *at = stream->next;
            stream_free(stream);
        } else {
            at = &stream->next;
        }
    }
}

static bool fits(const struct gb_stream_options *options, uint32_t offset, uint32_t bytes) {
    return offset <= options->template_bytes && bytes <= options->template_bytes - offset;
}

static bool valid(const struct gb_stream_options *options) {
    bool words = options->arrivals.words <= GB_CLASS_WORDS;
    for (uint32_t i = 0; words && i < options->arrivals.words; i++)
        words = fits(options, options->arrivals.word[i].offset, 2);
    return words && options->role <= GB_STREAM_SERVER && options->window && options->window <= GB_MOST_STREAM_WINDOW &&
           options->timeout_ns && options->timeout_ns <= LONGEST_TIMEOUT_NS && options->payload_bytes && options->payload_bytes % 4 == 0 && options->everybody &&
           options->template_count && options->template_count <= GB_MOST_TEMPLATES &&
           options->template_bytes <= GB_MOST_TEMPLATE_BYTES &&
           options->payload_bytes <= GB_MAX_FRAME_BYTES - options->template_bytes &&
           fits(options, options->number_offset, 4) && fits(options, options->bits_offset, 8) &&
           fits(options, options->flags_offset, 1) &&
           (options->magnitude_offset == GB_NO_OFFSET || fits(options, options->magnitude_offset, 4));
}

static struct stream *find(const struct consumer *consumer, uint32_t number) {
    struct stream *stream = consumer->nic->streams;
    while (stream && (stream->consumer != consumer || stream->options.number != number))
        stream = stream->next;
    return stream;
}

/* Sources differ in it as their first templates do (FNV-1a). */
static uint64_t seed_of(const struct gb_stream_options *options) {
    uint64_t seed = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < options->template_bytes; i++)
        seed = (seed ^ options->templates[0][i]) * UINT64_C(0x100000001b3);
    return seed;
}

static int open_stream(struct gb_engine *engine, struct consumer *consumer, const struct gb_stream_options *options) {
    if (find(consumer, options->number))
        return -EEXIST;
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return -ENOMEM;
    stream->consumer = consumer;
    stream->options = *options;
    stream->seed = seed_of(options);
    static const struct timer_kind timeout = {.fire = stream_resend_due};
    stream->timeout = (struct timer){.kind = &timeout, .owner = stream};
    stream->fragments = calloc(options->window, sizeof *stream->fragments);
    if (options->role == GB_STREAM_SERVER)
        stream->sums = malloc((size_t)2 * options->window * options->payload_bytes);
    if (!stream->fragments || (options->role == GB_STREAM_SERVER && !stream->sums) || !lps_reserve(engine, 1)) {
        stream_free(stream);
        return -ENOMEM;
    }
    stream->next = consumer->nic->streams;
    consumer->nic->streams = stream;
    return 0;
}

int gb_engine_open_stream(struct gb_engine *engine, uint32_t number, const struct gb_stream_options *options) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer && valid(options))
        outcome = open_stream(engine, consumer, options);
    engine_unlock(&engine->lock);
    return outcome;
}

static int add_vector(struct logical_process *lp, struct stream *stream, uint64_t tag, uint64_t size_bytes,
                      const void *from, void *to) {
    if (stream->failed) {
        consumer_complete(lp, stream->consumer, GB_COMPLETION_STREAM_FAILED, stream->options.number, tag, size_bytes,
                          NULL);
        return 0;
    }
    struct vector *vector = malloc(sizeof *vector);
    if (!vector)
        return -ENOMEM;
    uint32_t payload_bytes = stream->options.payload_bytes;
    *vector = (struct vector){.tag = tag,
                              .size_bytes = size_bytes,
                              .first = stream->end,
                              .fragments = size_bytes ? (size_bytes + payload_bytes - 1) / payload_bytes : 1,
                              .from = from,
                              .to = to};
    *(stream->last ? &stream->last->next : &stream->first) = vector;
    stream->last = vector;
    stream->end += vector->fragments;
    if (stream->options.role == GB_STREAM_SOURCE)
        stream_send_window(lp, stream);
    else
        stream_take_early(lp, stream);
    return 0;
}

int gb_engine_stream(struct gb_engine *engine, uint32_t number, uint32_t stream_number, uint64_t tag,
                     uint64_t size_bytes, const void *from, void *to) {
    int outcome = -ENOENT;
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    struct stream *stream = consumer ? find(consumer, stream_number) : NULL;
    if (stream && stream->options.role != GB_STREAM_SERVER && size_bytes % 4 == 0) {
        engine_catch_up(engine);
        outcome = add_vector(part_of(stream), stream, tag, size_bytes, from, to);
        engine_wake(engine);
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_stream_statistics(struct gb_engine *engine, uint32_t number, uint32_t stream_number,
                                struct gb_stream_statistics *statistics) {
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    struct stream *stream = consumer ? find(consumer, stream_number) : NULL;
    if (stream)
        *statistics = stream->statistics;
    engine_unlock(&engine->lock);
    return stream ? 0 : -ENOENT;
}
