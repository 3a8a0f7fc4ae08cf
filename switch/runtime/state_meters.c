/* Two-rate three-colour meters, colour-blind (RFC 2698). */
#include "state.h"

static double refilled(double tokens, double per_us, double burst, uint64_t elapsed_us) {
    double now = tokens + per_us * (double)elapsed_us;
    return now < burst ? now : burst;
}

uint64_t gb_meter_mark(struct gb_meter_cell *cell, uint64_t now_us, uint64_t amount) {
    if (!cell->configured)
        return GB_GREEN;
    /* Egress timestamps of one packet may lie before the ingress timestamp of another. */
    uint64_t elapsed_us = now_us > cell->last_us ? now_us - cell->last_us : 0;
    cell->last_us += elapsed_us;
    cell->committed_tokens = refilled(cell->committed_tokens, cell->committed_per_us, cell->committed_burst, elapsed_us);
    cell->peak_tokens = refilled(cell->peak_tokens, cell->peak_per_us, cell->peak_burst, elapsed_us);
    if (cell->peak_tokens < (double)amount)
        return GB_RED;
    cell->peak_tokens -= (double)amount;
    if (cell->committed_tokens < (double)amount)
        return GB_YELLOW;
    cell->committed_tokens -= (double)amount;
    return GB_GREEN;
}

void gb_meter_configure(struct gb_meter_cell *cell, double committed_per_s, double committed_burst, double peak_per_s,
                        double peak_burst) {
    *cell = (struct gb_meter_cell){
        .configured = true,
        .committed_per_us = committed_per_s / 1e6,
        .committed_burst = committed_burst,
        .committed_tokens = committed_burst,
        .peak_per_us = peak_per_s / 1e6,
        .peak_burst = peak_burst,
        .peak_tokens = peak_burst,
    };
}

void gb_meter_reset(struct gb_meter_cell *cell) { *cell = (struct gb_meter_cell){0}; }

struct gb_meter_cell *gb_meter_cell(struct gb_meter *meter, uint32_t index) {
    return index < meter->size ? &meter->cells[index] : NULL;
}
