/* Congestion control of queue pairs, in integers, so that a run is the same on every machine.
 *
 * DCTCP (RFC 8257): once per window, its size is reduced by half the smoothed fraction of bytes that were marked, or it
 * grows by a packet. DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015): the
 * receiver's notifications reduce a rate, which recovers in stages, by time and by bytes.
 */
#include "engine/transport/pair.h"

enum {
    DCTCP_BITS = 20,
    DCTCP_GAIN_SHIFT = 4,           /* g is 1/16, as RFC 8257 recommends */
    DCQCN_BITS = 32,
    DCQCN_GAIN_SHIFT = 8,           /* g is 1/256 */
    FAST_RECOVERY_STAGES = 5,       /* F */
    LINE_PER_INCREASE = 1000,       /* R_AI is the line's rate divided by it: 40 Mbit/s at 40 Gbit/s */
    INCREASE_PER_HYPER = 10,        /* R_HAI is so many times R_AI, as in QCN */
};

/* Figures 4 and 14 of the paper: without a notification for so long alpha decays, and the rate grows. */
static const uint64_t ALPHA_NS = 55000, RATE_NS = 55000, EVENT_BYTES = 10000000;

/* ---- DCTCP ---- */

static void dctcp_window_ends(struct queue_pair *pair) {
    struct dctcp *dctcp = &pair->dctcp;
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
    struct dctcp *dctcp = &pair->dctcp;
    uint32_t newly_marked = marked_bytes - dctcp->last_marked;
    dctcp->acked_bytes += acked_bytes;
    /* One that was overtaken tells of fewer. */
    if ((int32_t)newly_marked > 0) {
        dctcp->marked_bytes += newly_marked;
        dctcp->last_marked = marked_bytes;
    }
    if (pair->sender.una > dctcp->window_end)
        dctcp_window_ends(pair);
}

/* As TCP does: half the window, once per window. */
static void dctcp_loss(struct queue_pair *pair) {
    struct dctcp *dctcp = &pair->dctcp;
    struct sender *sender = &pair->sender;
    uint64_t mtu_bytes = pair->options.mtu_bytes, half = sender->window_bytes / 2;
    if (sender->una < dctcp->loss_end)
        return;
    sender->window_bytes = dctcp->slow_start_bytes = half > mtu_bytes ? half : mtu_bytes;
    dctcp->loss_end = sender->top;
}

/* ---- DCQCN ---- */

static void dcqcn_set(struct queue_pair *pair, uint64_t rate_bps) {
    struct dcqcn *dcqcn = &pair->dcqcn;
    uint64_t least_bps = dcqcn->line_bps / LINE_PER_INCREASE;
    sender_set_rate(pair, rate_bps > least_bps ? rate_bps : least_bps ? least_bps : 1);
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The paper's figure 7, after an event of time or bytes. */
static void dcqcn_increase(struct queue_pair *pair) {
    struct dcqcn *dcqcn = &pair->dcqcn;
    uint64_t increase_bps = dcqcn->line_bps / LINE_PER_INCREASE;
    uint32_t most = larger(dcqcn->time_stage, dcqcn->byte_stage);
    uint32_t least = dcqcn->time_stage + dcqcn->byte_stage - most;
    if (least > FAST_RECOVERY_STAGES)
        dcqcn->target_bps += (least - FAST_RECOVERY_STAGES) * INCREASE_PER_HYPER * increase_bps;
    else if (most >= FAST_RECOVERY_STAGES)
        dcqcn->target_bps += increase_bps;
    if (dcqcn->target_bps > dcqcn->line_bps)
        dcqcn->target_bps = dcqcn->line_bps;
    uint64_t rate_bps = (pair->sender.rate_bps + dcqcn->target_bps) / 2;
    /* Halves never get there. */
    if (dcqcn->line_bps - rate_bps <= dcqcn->line_bps >> 20) {
        rate_bps = dcqcn->line_bps;
        dcqcn->reduced = false;
    }
    dcqcn_set(pair, rate_bps);
}

/* Nobody sees what a rate is between two packets: so no timers run for it. */
void congestion_catch_up(struct queue_pair *pair, uint64_t now_ns) {
    struct dcqcn *dcqcn = &pair->dcqcn;
    for (; dcqcn->reduced && dcqcn->rate_ns <= now_ns; dcqcn->rate_ns += RATE_NS) {
        dcqcn->time_stage++;
        dcqcn_increase(pair);
    }
}

static void dcqcn_decay(struct dcqcn *dcqcn, uint64_t now_ns) {
    /* What is below 2^GAIN_SHIFT stays. */
    for (; dcqcn->alpha_ns <= now_ns && dcqcn->alpha >> DCQCN_GAIN_SHIFT; dcqcn->alpha_ns += ALPHA_NS)
        dcqcn->alpha -= dcqcn->alpha >> DCQCN_GAIN_SHIFT;
}

void congestion_notified(struct queue_pair *pair, uint64_t now_ns) {
    struct dcqcn *dcqcn = &pair->dcqcn;
    pair->statistics.cnps_received++;
    if (pair->options.congestion_control != GB_DCQCN)
        return;
    congestion_catch_up(pair, now_ns);
    dcqcn_decay(dcqcn, now_ns);
    uint64_t rate_bps = pair->sender.rate_bps;
    dcqcn->target_bps = rate_bps;
    dcqcn_set(pair, rate_bps - (uint64_t)((unsigned __int128)rate_bps * dcqcn->alpha >> (DCQCN_BITS + 1)));
    dcqcn->alpha += (UINT64_C(1) << (DCQCN_BITS - DCQCN_GAIN_SHIFT)) - (dcqcn->alpha >> DCQCN_GAIN_SHIFT);
    dcqcn->time_stage = dcqcn->byte_stage = 0;
    dcqcn->bytes = 0;
    dcqcn->reduced = true;
    dcqcn->alpha_ns = now_ns + ALPHA_NS;
    dcqcn->rate_ns = now_ns + RATE_NS;
}

/* ---- Either ---- */

void congestion_open(struct queue_pair *pair, uint64_t line_bps) {
    pair->dctcp.alpha = UINT64_C(1) << DCTCP_BITS;
    pair->dctcp.slow_start_bytes = pair->options.window_bytes;
    pair->dctcp.window_end = pair->options.first_psn;
    pair->dcqcn.alpha = UINT64_C(1) << DCQCN_BITS;
    pair->dcqcn.line_bps = pair->dcqcn.target_bps = line_bps;
    pair->dcqcn.alpha_ns = UINT64_MAX;
    if (pair->options.congestion_control == GB_DCQCN)
        pair->sender.rate_bps = line_bps;
}

void congestion_acknowledged(struct queue_pair *pair, uint64_t acked_bytes, uint32_t marked_bytes) {
    if (pair->options.congestion_control == GB_DCTCP)
        dctcp_acknowledged(pair, acked_bytes, marked_bytes);
}

void congestion_loss(struct queue_pair *pair) {
    if (pair->options.congestion_control == GB_DCTCP)
        dctcp_loss(pair);
}

void congestion_timeout(struct queue_pair *pair) {
    if (pair->options.congestion_control != GB_DCTCP)
        return;
    uint64_t half = pair->sender.window_bytes / 2, mtu_bytes = pair->options.mtu_bytes;
    pair->dctcp.slow_start_bytes = half > 2 * mtu_bytes ? half : 2 * mtu_bytes;
    pair->dctcp.loss_end = pair->sender.top;
    pair->sender.window_bytes = mtu_bytes;
}

void congestion_sent(struct queue_pair *pair, uint64_t frame_bytes) {
    struct dcqcn *dcqcn = &pair->dcqcn;
    if (!dcqcn->reduced)
        return;
    dcqcn->bytes += frame_bytes;
    if (dcqcn->bytes < EVENT_BYTES)
        return;
    dcqcn->bytes = 0;
    dcqcn->byte_stage++;
    dcqcn_increase(pair);
}
