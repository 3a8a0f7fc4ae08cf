/* Three-colour meters, colour-blind: two rates (RFC 2698) or a single one (RFC 2697). */
#include "state/state.h"

static void refill_two_rates(struct gb_meter_cell *cell, double elapsed_us) {
    double committed = cell->committed_tokens + cell->committed_per_us * elapsed_us;
    double peak = cell->peak_tokens + cell->peak_per_us * elapsed_us;
    cell->committed_tokens = committed < cell->committed_burst ? committed : cell->committed_burst;
    cell->peak_tokens = peak < cell->peak_burst ? peak : cell->peak_burst;
}

/* What the committed bucket has no room for goes into the excess bucket. */
static void refill_single_rate(struct gb_meter_cell *cell, double elapsed_us) {
    double committed = cell->committed_tokens + cell->committed_per_us * elapsed_us;
    double surplus = committed - cell->committed_burst;
    if (surplus <= 0) {
        cell->committed_tokens = committed;
        return;
    }
    double excess = cell->peak_tokens + surplus;
    cell->committed_tokens = cell->committed_burst;
    cell->peak_tokens = excess < cell->peak_burst ? excess : cell->peak_burst;
}

static bool take(double *tokens, double amount) {
    if (*tokens < amount)
        return false;
    *tokens -= amount;
    return true;
}

static enum gb_colour colour_of(struct gb_meter_cell *cell, uint64_t now_us, double amount) {
    if (!cell->configured)
        return GB_GREEN;
    /* Egress timestamps of one packet may lie before the ingress timestamp of another. */
    uint64_t elapsed_us = now_us > cell->last_us ? now_us - cell->last_us : 0;
    cell->last_us += elapsed_us;
    if (cell->single_rate) {
        refill_single_rate(cell, (double)elapsed_us);
        if (take(&cell->committed_tokens, amount))
            return GB_GREEN;
        return take(&cell->peak_tokens, amount) ? GB_YELLOW : GB_RED;
    }
    refill_two_rates(cell, (double)elapsed_us);
    if (!take(&cell->peak_tokens, amount))
        return GB_RED;
    return take(&cell->committed_tokens, amount) ? GB_GREEN : GB_YELLOW;
}

uint64_t gb_meter_mark(struct gb_meter_cell *cell, enum gb_meter_unit unit, uint64_t now_us, uint64_t bytes) {
    enum gb_colour colour = colour_of(cell, now_us, unit == GB_METER_PACKETS ? 1 : (double)bytes);
    gb_count_packet(&cell->marked[colour], bytes);
    return colour;
}

void gb_meter_configure(struct gb_meter_cell *cell, double committed_per_s, double committed_burst, double peak_per_s,
                        double peak_burst) {
    gb_meter_reset(cell);
    cell->configured = true;
    cell->committed_per_us = committed_per_s / 1e6;
    cell->committed_burst = cell->committed_tokens = committed_burst;
    cell->peak_per_us = peak_per_s / 1e6;
    cell->peak_burst = cell->peak_tokens = peak_burst;
}

void gb_meter_configure_single_rate(struct gb_meter_cell *cell, double committed_per_s, double committed_burst,
                                    double excess_burst) {
    gb_meter_configure(cell, committed_per_s, committed_burst, 0, excess_burst);
    cell->single_rate = true;
}

void gb_meter_reset(struct gb_meter_cell *cell) {
    struct gb_meter_cell all_green = {0};
    memcpy(all_green.marked, cell->marked, sizeof cell->marked);
    *cell = all_green;
}

void gb_meter_counts(const struct gb_meter_cell *cell, struct gb_count marked[3]) {
    memcpy(marked, cell->marked, sizeof cell->marked);
}

void gb_meter_counts_clear(struct gb_meter_cell *cell) { memset(cell->marked, 0, sizeof cell->marked); }

struct gb_meter_cell *gb_meter_cell(struct gb_meter *meter, uint32_t index) {
    return index < meter->size ? &meter->cells[index] : NULL;
}
