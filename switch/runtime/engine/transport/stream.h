/* Streams of fragments: what cards and consumers need to know of them. */
#ifndef GRADBED_STREAM_H
#define GRADBED_STREAM_H

#include "engine/internal.h"
#include "engine/transport/card.h"

#pragma GCC visibility push(hidden)

struct consumer;

/* Whether the packet is one for a stream; it is the stream's then. */
bool streams_take(struct partition *, struct card *, struct packet *);
/* All of a consumer. */
void streams_close(struct consumer *);

#pragma GCC visibility pop
#endif
