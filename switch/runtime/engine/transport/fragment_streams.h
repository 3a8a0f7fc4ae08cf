/* Streams of fragments between a host's NIC and many others at once, through switches that sum or copy them: at ports
 * that end in memory and with a manual clock.
 *
 * A source sends vectors in numbered fragments, at most a window of them at a time. A fragment is done when replies have
 * come from everybody, whose bits these carry. A sink takes vectors from a source and replies to each fragment. A server
 * adds up what sources send of a fragment, alone or already summed by switches, and replies to all once everybody is in it.
 * What is not replied to is sent again, with a flag, and if that does not help, past all switches: a server also adds up
 * what comes of single sources, so that parts which it cannot take apart stand in nobody's way. What frames look like their templates say; this knows where the
 * number, flags and bits are, and that the payload is of 32-bit integers, big-endian, which add up modulo 2^32.
 */
#ifndef GRADBED_FRAGMENT_STREAMS_H
#define GRADBED_FRAGMENT_STREAMS_H

#include "engine/engine.h"

#define GB_MOST_TEMPLATES 64
#define GB_MOST_TEMPLATE_BYTES 192
#define GB_MOST_STREAM_WINDOW 65536
#define GB_NO_OFFSET UINT32_MAX

enum gb_stream_role { GB_STREAM_SOURCE, GB_STREAM_SINK, GB_STREAM_SERVER };

struct gb_stream_options {
    uint64_t timeout_ns;            /* at most an hour */
    uint64_t everybody;             /* bits of all whose replies, or parts, there have to be */
    uint32_t number;                /* of the stream, unique for its consumer */
    uint32_t role;
    uint32_t window;                /* fragments; of a server, which knows the results of so many, two of the sources' */
    uint32_t give_up_after;         /* timeouts of a fragment; from the fifth on they double, up to 1,024 times as long */
    uint32_t payload_bytes;         /* of a fragment, a multiple of 4 */
    uint32_t reply_payload;         /* 1: replies have a payload, too */
    uint32_t template_bytes, template_count;    /* fragment n has template n modulo their number */
    uint32_t number_offset;         /* 32 bits */
    uint32_t bits_offset;           /* 64 bits */
    uint32_t magnitude_offset;      /* 32 bits: the largest absolute value of the payload; or GB_NO_OFFSET */
    uint32_t flags_offset;          /* 8 bits */
    uint32_t again;                 /* flags of what is sent again, and of replies to that */
    uint32_t came_again;            /* and those, any of which such an arrival has */
    uint32_t direct_after;          /* so often sent again, a fragment goes by `direct`, past all switches; 0: never */
    struct gb_class_pattern arrivals;   /* frames for this stream */
    uint8_t direct[GB_MOST_TEMPLATE_BYTES];
    uint8_t templates[GB_MOST_TEMPLATES][GB_MOST_TEMPLATE_BYTES];
};

struct gb_stream_statistics {
    uint64_t sent_fragments, retransmissions, timeouts, received_fragments, duplicates, parts;
};

/* -EEXIST: the number is taken. */
int gb_engine_open_stream(struct gb_engine *, uint32_t consumer, const struct gb_stream_options *);
/* A source sends a vector, a sink takes the next one. from, to: so many bytes, integers of this machine; NULL: zeros, or
 * nowhere. They stay the caller's until the completion (GB_COMPLETION_STREAMED or _STREAM_FAILED). */
int gb_engine_stream(struct gb_engine *, uint32_t consumer, uint32_t stream, uint64_t tag, uint64_t size_bytes,
                     const void *from, void *to);
int gb_engine_stream_statistics(struct gb_engine *, uint32_t consumer, uint32_t stream, struct gb_stream_statistics *);

#endif
