/* Streams of fragments: a window of them at the source, replies with bits, sums at a server. */
#include "engine/transport/fragment_streams.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ports/classes.h"
#include "engine/random.h"
#include "engine/transport/pair.h"
#include "engine/transport/stream.h"

enum { FIRST_TRIES = 4, MOST_DOUBLINGS = 10 };

static struct fragment *fragment_of(const struct stream *stream, uint64_t number) {
    return &stream->fragments[number % stream->options.window];
}

static uint8_t *sum_of(const struct stream *stream, uint64_t number, bool singles) {
    return stream->sums + (2 * (number % stream->options.window) + singles) * stream->options.payload_bytes;
}

static uint32_t get_32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static void put_32(uint8_t *at, uint32_t value) {
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

static uint64_t get_64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

/* ---- Payloads ---- */

static void to_wire(uint8_t *wire, const uint8_t *own, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t value;
        memcpy(&value, own + i, sizeof value);
        put_32(wire + i, value);
    }
}

static void from_wire(uint8_t *own, const uint8_t *wire, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t value = get_32(wire + i);
        memcpy(own + i, &value, sizeof value);
    }
}

static void add(uint8_t *sum, const uint8_t *wire, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += 4)
        put_32(sum + i, get_32(sum + i) + get_32(wire + i));
}

static uint32_t magnitude(const uint8_t *wire, uint32_t bytes) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < bytes; i += 4) {
        int32_t value = (int32_t)get_32(wire + i);
        uint32_t absolute = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
        if (absolute > largest)
            largest = absolute;
    }
    return largest;
}

/* How many bytes of the fragment are of the vector; the rest of its payload is zeros. */
static uint32_t part_bytes(const struct stream *stream, const struct vector *vector, uint64_t number) {
    uint64_t offset = (number - vector->first) * stream->options.payload_bytes;
    uint64_t left = vector->size_bytes - offset;
    return left < stream->options.payload_bytes ? (uint32_t)left : stream->options.payload_bytes;
}

static struct vector *vector_of(const struct stream *stream, uint64_t number) {
    struct vector *vector = stream->first;
    while (vector && number >= vector->first + vector->fragments)
        vector = vector->next;
    return vector && number >= vector->first ? vector : NULL;
}

/* ---- Sending ---- */

/* With a payload of zeros; NULL when out of memory. */
static struct packet *make(struct logical_process *lp, struct stream *stream, uint64_t number, uint32_t tries,
                           bool payload) {
    const struct gb_stream_options *options = &stream->options;
    uint32_t length = options->template_bytes + (payload ? options->payload_bytes : 0);
    struct packet *packet = packet_take(&lp->pool, lp->pool.headroom_bytes, length);
    if (!packet)
        return NULL;
    uint8_t *data = packet->view.data;
    bool direct = options->direct_after && tries > options->direct_after;
    memcpy(data, direct ? options->direct : options->templates[number % options->template_count],
           options->template_bytes);
    memset(data + options->template_bytes, 0, length - options->template_bytes);
    put_32(data + options->number_offset, (uint32_t)number);
    if (tries && !direct)
        data[options->flags_offset] |= (uint8_t)options->again;
    packet->view.length = length;
    return packet;
}

static void offer(struct logical_process *lp, struct stream *stream, struct packet *packet) {
    struct gb_consumer_counts *counts = &stream->consumer->counts;
    struct link_direction *link = stream->consumer->nic->link;
    if (link->classes)
        classify(lp->engine, packet);
    counts->sent_frames++;
    counts->sent_bytes += packet->view.length;
    counts->sent_classes[packet->class_number]++;
    direction_offer(lp, link, packet);
}

static void send_fragment(struct logical_process *lp, struct stream *stream, uint64_t number) {
    const struct gb_stream_options *options = &stream->options;
    const struct vector *vector = vector_of(stream, number);
    struct fragment *fragment = fragment_of(stream, number);
    struct packet *packet = make(lp, stream, number, fragment->tries, true);
    fragment->sent_ns = lp->now_ns;
    if (!packet)
        return;                     /* as if it had been lost */
    uint8_t *payload = packet->view.data + options->template_bytes;
    if (vector->from) {
        uint64_t offset = (number - vector->first) * options->payload_bytes;
        to_wire(payload, vector->from + offset, part_bytes(stream, vector, number));
    }
    if (options->magnitude_offset != GB_NO_OFFSET)
        put_32(packet->view.data + options->magnitude_offset,
               vector->from ? magnitude(payload, options->payload_bytes) : 0);
    stream->statistics.sent_fragments++;
    stream->statistics.retransmissions += fragment->tries > 0;
    offer(lp, stream, packet);
}

/* When it is sent again. After the first tries pauses double, up to a limit: who has not replied by then may compute,
 * for much longer than a packet is under way. From the second on they are up to half longer, by another part for each
 * source: all repeat until the parts of all have come. */
static uint64_t due_ns(const struct stream *stream, const struct fragment *fragment) {
    uint32_t doublings = fragment->tries > FIRST_TRIES ? fragment->tries - FIRST_TRIES : 0;
    uint64_t pause_ns = stream->options.timeout_ns << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
    if (fragment->tries)
        pause_ns += random_up_to_half(pause_ns, stream->seed + (fragment->number << 32) + fragment->tries);
    return fragment->sent_ns + pause_ns;
}

static void arm(struct logical_process *lp, struct stream *stream, uint64_t at_ns) {
    if (timer_armed(&stream->timeout)) {
        if (stream->timeout.due_ns <= at_ns)
            return;
        timer_stop(&lp->timers, &stream->timeout);
    }
    timer_arm(&lp->timers, &stream->timeout, at_ns);
}

void stream_send_window(struct logical_process *lp, struct stream *stream) {
    uint64_t first = stream->next_number;
    while (stream->next_number < stream->end && stream->next_number < stream->una + stream->options.window) {
        uint64_t number = stream->next_number++;
        *fragment_of(stream, number) = (struct fragment){.number = number, .used = true};
        send_fragment(lp, stream, number);
    }
    if (first < stream->next_number)
        arm(lp, stream, lp->now_ns + stream->options.timeout_ns);
}

static void fail(struct logical_process *lp, struct stream *stream) {
    stream->failed = true;
    while (stream->first) {
        struct vector *vector = stream->first;
        stream->first = vector->next;
        consumer_complete(lp, stream->consumer, GB_COMPLETION_STREAM_FAILED, stream->options.number, vector->tag,
                          vector->size_bytes, NULL);
        free(vector);
    }
    stream->last = NULL;
    stream->una = stream->next_number = stream->end;
}

void stream_resend_due(struct logical_process *lp, void *owner) {
    struct stream *stream = owner;
    uint64_t next_ns = UINT64_MAX;
    for (uint64_t number = stream->una; number < stream->next_number; number++) {
        struct fragment *fragment = fragment_of(stream, number);
        if (fragment->done)
            continue;
        if (due_ns(stream, fragment) <= lp->now_ns) {
            stream->statistics.timeouts++;
            if (++fragment->tries > stream->options.give_up_after) {
                fail(lp, stream);
                return;
            }
            send_fragment(lp, stream, number);
        }
        uint64_t again_ns = due_ns(stream, fragment);
        next_ns = again_ns < next_ns ? again_ns : next_ns;
    }
    if (next_ns != UINT64_MAX)
        arm(lp, stream, next_ns);
}

/* ---- Arrivals ---- */

static void finish(struct logical_process *lp, struct stream *stream, struct vector *vector) {
    consumer_complete(lp, stream->consumer, GB_COMPLETION_STREAMED, stream->options.number, vector->tag,
                      vector->size_bytes, NULL);
    struct vector **at = &stream->first, *before = NULL;
    while (*at != vector) {
        before = *at;
        at = &(*at)->next;
    }
    *at = vector->next;
    if (stream->last == vector)
        stream->last = before;
    free(vector);
}

static void take_contents(struct stream *stream, struct vector *vector, uint64_t number, const uint8_t *payload) {
    if (vector->to)
        from_wire(vector->to + (number - vector->first) * stream->options.payload_bytes, payload,
                  part_bytes(stream, vector, number));
}

static void take_reply(struct logical_process *lp, struct stream *stream, const struct packet *packet) {
    const struct gb_stream_options *options = &stream->options;
    const uint8_t *data = packet->view.data;
    uint64_t number = widened(stream->una, get_32(data + options->number_offset), 32);
    struct fragment *fragment = fragment_of(stream, number);
    if (number < stream->una || number >= stream->next_number || fragment->done) {
        stream->statistics.duplicates++;
        return;
    }
    fragment->bits |= get_64(data + options->bits_offset);
    if ((fragment->bits & options->everybody) != options->everybody)
        return;
    fragment->done = true;
    struct vector *vector = vector_of(stream, number);
    if (!vector)
        return;                     /* there is none only of fragments that were done before */
    if (options->reply_payload)
        take_contents(stream, vector, number, data + options->template_bytes);
    while (stream->una < stream->next_number && fragment_of(stream, stream->una)->done)
        stream->una++;
    if (++vector->done == vector->fragments)
        finish(lp, stream, vector);
    stream_send_window(lp, stream);
}

static void reply(struct logical_process *lp, struct stream *stream, uint64_t number, bool again,
                  const uint8_t *payload) {
    const struct gb_stream_options *options = &stream->options;
    struct packet *packet = make(lp, stream, number, again, options->reply_payload);
    if (!packet)
        return;
    /* What a sink replies has zeros, if it has a payload. */
    if (options->reply_payload && payload)
        memcpy(packet->view.data + options->template_bytes, payload, options->payload_bytes);
    offer(lp, stream, packet);
}

static bool is_again(const struct stream *stream, const uint8_t *data) {
    return data[stream->options.flags_offset] & stream->options.came_again;
}

/* Adds to one of a fragment's sums; false if some of it is in there already. */
static bool add_part(struct stream *stream, uint64_t number, uint64_t *in_it, uint64_t bits, const uint8_t *payload,
                     bool singles) {
    uint8_t *sum = sum_of(stream, number, singles);
    if (*in_it & bits)
        return false;
    if (*in_it)
        add(sum, payload, stream->options.payload_bytes);
    else
        memcpy(sum, payload, stream->options.payload_bytes);
    *in_it |= bits;
    return true;
}

static void take_part(struct logical_process *lp, struct stream *stream, const struct packet *packet) {
    const struct gb_stream_options *options = &stream->options;
    const uint8_t *data = packet->view.data, *payload = data + options->template_bytes;
    uint64_t number = widened(stream->una, get_32(data + options->number_offset), 32);
    uint64_t bits = get_64(data + options->bits_offset);
    struct fragment *fragment = fragment_of(stream, number);
    if (!bits || bits & ~options->everybody) {
        stream->statistics.duplicates++;    /* of no known source */
        return;
    }
    if (!fragment->used || fragment->number < number)
        *fragment = (struct fragment){.number = number, .used = true};
    if (fragment->number != number) {
        stream->statistics.duplicates++;
        return;
    }
    if (fragment->done) {
        stream->statistics.duplicates++;
        if (is_again(stream, data))
            reply(lp, stream, number, true, sum_of(stream, number, fragment->bits != options->everybody));
        return;
    }
    bool news = add_part(stream, number, &fragment->bits, bits, payload, false);
    if (!(bits & (bits - 1)))
        news |= add_part(stream, number, &fragment->singles, bits, payload, true);
    *(news ? &stream->statistics.parts : &stream->statistics.duplicates) += 1;
    if (fragment->bits != options->everybody && fragment->singles != options->everybody)
        return;
    fragment->done = true;
    if (stream->una < number)
        stream->una = number;       /* near which the next numbers are */
    reply(lp, stream, number, is_again(stream, data),
          sum_of(stream, number, fragment->bits != options->everybody));
}

/* A sink's: false if its vector was not asked for yet. */
static bool take_fragment(struct logical_process *lp, struct stream *stream, const struct packet *packet) {
    const struct gb_stream_options *options = &stream->options;
    const uint8_t *data = packet->view.data;
    uint64_t number = widened(stream->una, get_32(data + options->number_offset), 32);
    if (number >= stream->end)
        return false;
    struct fragment *fragment = fragment_of(stream, number);
    struct vector *vector = vector_of(stream, number);
    if (!vector || (fragment->used && fragment->number >= number)) {
        stream->statistics.duplicates++;
    } else {
        *fragment = (struct fragment){.number = number, .used = true, .done = true};
        take_contents(stream, vector, number, data + options->template_bytes);
        if (stream->una < number)
            stream->una = number;
        if (++vector->done == vector->fragments)
            finish(lp, stream, vector);
    }
    reply(lp, stream, number, is_again(stream, data), NULL);
    return true;
}

void stream_take_early(struct logical_process *lp, struct stream *stream) {
    struct packet_list early = stream->early;
    struct packet *packet;
    stream->early = (struct packet_list){0};
    while ((packet = list_pop(&early))) {
        if (take_fragment(lp, stream, packet))
            packet_free(&lp->pool, packet);
        else
            list_append(&stream->early, packet);
    }
}

static bool matches(const struct stream *stream, const struct packet *packet) {
    const struct gb_stream_options *options = &stream->options;
    bool payload = options->role != GB_STREAM_SOURCE || options->reply_payload;
    if (packet->view.length != options->template_bytes + (payload ? options->payload_bytes : 0))
        return false;
    return class_fits(&options->arrivals, packet);
}

bool streams_take(struct logical_process *lp, struct nic *nic, struct packet *packet) {
    for (struct stream *stream = nic->streams; stream; stream = stream->next) {
        if (!matches(stream, packet))
            continue;
        struct gb_consumer_counts *counts = &stream->consumer->counts;
        counts->received_frames++;
        counts->received_bytes += packet->view.length;
        counts->received_classes[packet->class_number]++;
        stream->statistics.received_fragments++;
        if (stream->options.role == GB_STREAM_SINK && !stream->failed && !take_fragment(lp, stream, packet)) {
            list_append(&stream->early, packet);
            return true;
        }
        if (stream->options.role == GB_STREAM_SOURCE)
            take_reply(lp, stream, packet);
        else if (stream->options.role == GB_STREAM_SERVER)
            take_part(lp, stream, packet);
        packet_free(&lp->pool, packet);
        return true;
    }
    return false;
}
