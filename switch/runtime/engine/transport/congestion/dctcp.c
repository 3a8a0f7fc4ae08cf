/* DCTCP (RFC 8257): once per window, its size is reduced by half the smoothed fraction of bytes that were marked, or it
 * grows by a packet. */
#include "engine/transport/congestion.h"

enum {
    DCTCP_BITS = 20,
    DCTCP_GAIN_SHIFT = 4,           /* g is 1/16, as RFC 8257 recommends */
};

struct dctcp {
    uint64_t alpha;                 /* of 2^DCTCP_BITS */
    uint64_t window_end, acked_bytes, marked_bytes, slow_start_bytes;
    uint64_t loss_end;              /* what is lost before it was sent before the last reaction */
    uint32_t last_marked;
};

static struct dctcp *state_of(struct queue_pair *pair) {
    return (struct dctcp *)pair->congestion_state;
}

static void dctcp_open(struct queue_pair *pair, uint64_t line_bps) {
    (void)line_bps;
    *state_of(pair) = (struct dctcp){
        .alpha = UINT64_C(1) << DCTCP_BITS,
        .slow_start_bytes = pair->options.window_bytes,
        .window_end = pair->options.first_psn,
    };
}

static void dctcp_window_ends(struct queue_pair *pair) {
    struct dctcp *dctcp = state_of(pair);
    struct sender *sender = &pair->sender;
    uint64_t acked = dctcp->acked_bytes, mtu_bytes = pair->options.mtu_bytes;
    uint64_t marked = dctcp->marked_bytes < acked ? dctcp->marked_bytes : acked;
    if (acked)
        dctcp->alpha += ((marked << DCTCP_BITS) / acked >> DCTCP_GAIN_SHIFT) - (dctcp->alpha >> DCTCP_GAIN_SHIFT);
    if (marked)
        sender->window_bytes -= sender->window_bytes * dctcp->alpha >> (DCTCP_BITS + 1);
    else if (sender->window_bytes < dctcp->slow_start_bytes)
        sender->window_bytes += acked;
    else
        sender->window_bytes += mtu_bytes;
    if (marked)
        dctcp->slow_start_bytes = sender->window_bytes;
    if (sender->window_bytes < mtu_bytes)
        sender->window_bytes = mtu_bytes;
    if (sender->window_bytes > pair->options.window_bytes)
        sender->window_bytes = pair->options.window_bytes;
    dctcp->acked_bytes = dctcp->marked_bytes = 0;
    dctcp->window_end = sender->top;
}

static void dctcp_acknowledged(struct queue_pair *pair, uint64_t acked_bytes, uint32_t marked_bytes) {
    struct dctcp *dctcp = state_of(pair);
    uint32_t newly_marked = marked_bytes - dctcp->last_marked;
    dctcp->acked_bytes += acked_bytes;
    /* One that was overtaken reports fewer. */
    if ((int32_t)newly_marked > 0) {
        dctcp->marked_bytes += newly_marked;
        dctcp->last_marked = marked_bytes;
    }
    if (pair->sender.una > dctcp->window_end)
        dctcp_window_ends(pair);
}

/* As TCP does: half the window, once per window. */
static void dctcp_loss(struct queue_pair *pair) {
    struct dctcp *dctcp = state_of(pair);
    struct sender *sender = &pair->sender;
    uint64_t mtu_bytes = pair->options.mtu_bytes, half = sender->window_bytes / 2;
    if (sender->una < dctcp->loss_end)
        return;
    sender->window_bytes = dctcp->slow_start_bytes = half > mtu_bytes ? half : mtu_bytes;
    dctcp->loss_end = sender->top;
}

static void dctcp_timeout(struct queue_pair *pair) {
    struct dctcp *dctcp = state_of(pair);
    uint64_t half = pair->sender.window_bytes / 2, mtu_bytes = pair->options.mtu_bytes;
    dctcp->slow_start_bytes = half > 2 * mtu_bytes ? half : 2 * mtu_bytes;
    dctcp->loss_end = pair->sender.top;
    pair->sender.window_bytes = mtu_bytes;
}

const struct congestion_control congestion_dctcp = {
    .name = "dctcp",
    .state_bytes = sizeof(struct dctcp),
    .ecn_capable = true,
    .echoes_marks = true,
    .needs_window = true,
    .open = dctcp_open,
    .acknowledged = dctcp_acknowledged,
    .loss = dctcp_loss,
    .timeout = dctcp_timeout,
};
