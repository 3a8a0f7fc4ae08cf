/* DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015): the receiver's notifications
 * reduce a rate, which recovers in stages, by time and by bytes. */
#include "engine/transport/congestion.h"

enum {
    DCQCN_BITS = 32,
    DCQCN_GAIN_SHIFT = 8,           /* g is 1/256 */
    FAST_RECOVERY_STAGES = 5,       /* F */
    LINE_PER_INCREASE = 1000,       /* R_AI is the line's rate divided by it: 40 Mbit/s at 40 Gbit/s */
    INCREASE_PER_HYPER = 10,        /* R_HAI is so many times R_AI, as in QCN */
};

/* Figures 4 and 14 of the paper: without a notification for so long alpha decays, and the rate grows. */
static const uint64_t ALPHA_NS = 55000, RATE_NS = 55000, EVENT_BYTES = 10000000;

struct dcqcn {
    uint64_t line_bps, target_bps, alpha;   /* alpha: of 2^DCQCN_BITS */
    uint64_t bytes;                 /* since the last byte event */
    uint32_t time_stage, byte_stage;
    bool reduced;                   /* the rate, below the line's */
    uint64_t alpha_ns, rate_ns;     /* when alpha decays next, and when the rate grows while it is reduced */
};

static struct dcqcn *state_of(struct queue_pair *pair) {
    return (struct dcqcn *)pair->congestion_state;
}

static void dcqcn_open(struct queue_pair *pair, uint64_t line_bps) {
    *state_of(pair) = (struct dcqcn){
        .alpha = UINT64_C(1) << DCQCN_BITS,
        .line_bps = line_bps,
        .target_bps = line_bps,
        .alpha_ns = UINT64_MAX,
    };
    pair->sender.rate_bps = line_bps;
}

static void dcqcn_set(struct queue_pair *pair, uint64_t rate_bps) {
    struct dcqcn *dcqcn = state_of(pair);
    uint64_t least_bps = dcqcn->line_bps / LINE_PER_INCREASE;
    sender_set_rate(pair, rate_bps > least_bps ? rate_bps : least_bps ? least_bps : 1);
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* The paper's figure 7, after an event of time or bytes. */
static void dcqcn_increase(struct queue_pair *pair) {
    struct dcqcn *dcqcn = state_of(pair);
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

/* A rate has no effect between two packets, so no timers run for it. */
static void dcqcn_catch_up(struct queue_pair *pair, uint64_t now_ns) {
    struct dcqcn *dcqcn = state_of(pair);
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

static void dcqcn_notified(struct queue_pair *pair, uint64_t now_ns) {
    struct dcqcn *dcqcn = state_of(pair);
    dcqcn_catch_up(pair, now_ns);
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

static void dcqcn_sent(struct queue_pair *pair, uint64_t frame_bytes) {
    struct dcqcn *dcqcn = state_of(pair);
    if (!dcqcn->reduced)
        return;
    dcqcn->bytes += frame_bytes;
    if (dcqcn->bytes < EVENT_BYTES)
        return;
    dcqcn->bytes = 0;
    dcqcn->byte_stage++;
    dcqcn_increase(pair);
}

const struct congestion_control congestion_dcqcn = {
    .name = "dcqcn",
    .state_bytes = sizeof(struct dcqcn),
    .ecn_capable = true,
    .sends_cnps = true,
    .needs_rate = true,
    .open = dcqcn_open,
    .notified = dcqcn_notified,
    .sent = dcqcn_sent,
    .catch_up = dcqcn_catch_up,
};
