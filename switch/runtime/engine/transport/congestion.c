/* The congestion controls there are. */
#include <errno.h>
#include <string.h>

#include "engine/transport/congestion.h"

#pragma GCC visibility push(hidden)
extern const struct congestion_control congestion_dctcp, congestion_dcqcn;
#pragma GCC visibility pop

/* A window of constant size. */
static const struct congestion_control congestion_none = {.name = "none"};

static const struct congestion_control *const CONTROLS[] = {
    &congestion_none,
    &congestion_dctcp,
    &congestion_dcqcn,
    &congestion_callback,
};

const struct congestion_control *congestion_control(uint32_t number) {
    return number < sizeof CONTROLS / sizeof *CONTROLS ? CONTROLS[number] : NULL;
}

int gb_engine_congestion_control(struct gb_engine *engine, const char *name) {
    const struct congestion_control *control;
    (void)engine;
    for (int number = 0; (control = congestion_control((uint32_t)number)); number++)
        if (!strcmp(control->name, name))
            return number;
    return -ENOENT;
}

void congestion_open(struct queue_pair *pair, uint64_t line_bps) {
    if (pair->congestion->open)
        pair->congestion->open(pair, line_bps);
}

void congestion_catch_up(struct queue_pair *pair, uint64_t now_ns) {
    if (pair->congestion->catch_up)
        pair->congestion->catch_up(pair, now_ns);
}

void congestion_acknowledged(struct queue_pair *pair, uint64_t acked_bytes, uint32_t marked_bytes) {
    if (pair->congestion->acknowledged)
        pair->congestion->acknowledged(pair, acked_bytes, marked_bytes);
}

void congestion_loss(struct queue_pair *pair) {
    if (pair->congestion->loss)
        pair->congestion->loss(pair);
}

void congestion_timeout(struct queue_pair *pair) {
    if (pair->congestion->timeout)
        pair->congestion->timeout(pair);
}

void congestion_notified(struct queue_pair *pair, uint64_t now_ns) {
    pair->statistics.cnps_received++;
    if (pair->congestion->notified)
        pair->congestion->notified(pair, now_ns);
}

void congestion_sent(struct queue_pair *pair, uint64_t frame_bytes) {
    if (pair->congestion->sent)
        pair->congestion->sent(pair, frame_bytes);
}
