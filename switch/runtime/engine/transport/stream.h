/* Streams of fragments: what their two files, NICs and consumers need to know of them. */
#ifndef GRADBED_STREAM_H
#define GRADBED_STREAM_H

#include "engine/internal.h"
#include "engine/transport/nic.h"
#include "engine/transport/fragment_streams.h"

#pragma GCC visibility push(hidden)

struct consumer;

/* A vector that a source sends or a sink takes. Fragments of a stream are counted through. */
struct vector {
    struct vector *next;
    uint64_t tag, size_bytes, first, fragments, done;
    const uint8_t *from;
    uint8_t *to;
};

/* A fragment under way, by its number modulo the window: of a source, who has replied; of a server, who is in the sum. */
struct fragment {
    uint64_t number, bits, sent_ns;
    uint64_t singles;               /* of a server: who is in the sum of what came of single sources */
    uint32_t tries;
    bool used, done;
};

struct stream {
    struct stream *next;
    struct consumer *consumer;
    struct gb_stream_options options;
    uint64_t seed;                  /* of its random pauses, by its first template */
    struct vector *first, *last;
    uint64_t una, next_number, end; /* source: oldest that is not done, next to send, end of what is to be sent */
    struct fragment *fragments;     /* of the window */
    uint8_t *sums;                  /* server: two payloads for each of them, as on the wire: of all, of singles */
    struct packet_list early;       /* sink: of vectors that it was not asked to take yet */
    struct timer timeout;
    struct gb_stream_statistics statistics;
    bool failed;
};

/* Whether the packet is one for a stream; it is the stream's then. */
bool streams_take(struct logical_process *, struct nic *, struct packet *);
/* A source: as many fragments as the window allows. */
void stream_send_window(struct logical_process *, struct stream *);
/* A sink: what came before it was asked for. */
void stream_take_early(struct logical_process *, struct stream *);
/* Of the timer. */
void stream_resend_due(struct logical_process *, void *stream);
/* All of a consumer. */
void streams_close(struct consumer *);

#pragma GCC visibility pop
#endif
