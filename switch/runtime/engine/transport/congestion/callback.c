/* A control that is not in this library: the caller's functions say how many packets the window has, such as those of a
 * plug-in in Python. The thread that is the data plane calls them. */
#include "engine/transport/congestion.h"

struct callback {
    uint64_t una;                   /* packets that the caller has heard to be acknowledged */
    uint32_t last_marked;
};

static struct callback *state_of(struct queue_pair *pair) {
    return (struct callback *)pair->congestion_state;
}

static void set_window(struct queue_pair *pair, uint64_t packets) {
    pair->sender.window_bytes = (packets ? packets : 1) * pair->options.mtu_bytes;
}

static void callback_open(struct queue_pair *pair, uint64_t line_bps) {
    (void)line_bps;
    state_of(pair)->una = pair->options.first_psn;
    set_window(pair, pair->options.window_packets);
}

/* One call for each packet. The first one has the mark, if bytes were marked: one mark, one reaction. */
static void callback_acknowledged(struct queue_pair *pair, uint64_t acked_bytes, uint32_t marked_bytes) {
    struct callback *callback = state_of(pair);
    const struct sender *sender = &pair->sender;
    (void)acked_bytes;
    /* An acknowledgement that was overtaken reports fewer. */
    bool marked = (int32_t)(marked_bytes - callback->last_marked) > 0;
    if (marked && callback->una < sender->una)
        callback->last_marked = marked_bytes;
    for (; callback->una < sender->una; callback->una++, marked = false)
        set_window(pair, pair->options.window_acknowledged(callback->una, sender->top, marked, sender->top < sender->end));
}

static void callback_loss(struct queue_pair *pair) {
    set_window(pair, pair->options.window_lost(pair->sender.una, pair->sender.top));
}

const struct congestion_control congestion_callback = {
    .name = "callback",
    .state_bytes = sizeof(struct callback),
    .ecn_capable = true,
    .echoes_marks = true,
    .open = callback_open,
    .acknowledged = callback_acknowledged,
    .loss = callback_loss,
    .timeout = callback_loss,
};
