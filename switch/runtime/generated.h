/* What the C generated from a program includes: state, wide integers, checksums, header stacks, log lines. */
#ifndef GRADBED_GENERATED_H
#define GRADBED_GENERATED_H

#include "calculations.h"
#include "state/state.h"
#include "wide.h"

#define GB_MAX_JUMPS (1u << 16)             /* of one action */
#define GB_MAX_PARSER_STEPS (1u << 16)      /* of one packet */
#define GB_MAX_PIPELINE_STEPS (1u << 16)    /* rounds of all loops of one pipeline together */

/* ---- Variable-length fields: a word with the length in bits, then the bytes in packet order ---- */

static inline void gb_copy_variable(uint64_t *to, const uint64_t *from, uint32_t to_words) {
    uint64_t bytes = from[0] / 8;
    if (bytes > 8 * (uint64_t)to_words)
        bytes = 8 * (uint64_t)to_words;
    memmove(to + 1, from + 1, bytes);
    to[0] = 8 * bytes;
}

static inline bool gb_same_variable(const uint64_t *a, const uint64_t *b) {
    return a[0] == b[0] && memcmp(a + 1, b + 1, a[0] / 8) == 0;
}

static inline bool gb_same_words(const uint64_t *a, const uint64_t *b, uint32_t first, uint32_t count) {
    return memcmp(a + first, b + first, count * sizeof *a) == 0;
}

/* ---- Header stacks (state/stacks.c): as P4_16 has them, the elements that come in are invalid ---- */

void gb_stack_push(uint64_t *phv, uint32_t counter, uint32_t elements, uint32_t validity, uint32_t validity_stride,
                   uint32_t first, uint32_t stride, uint64_t count);
void gb_stack_pop(uint64_t *phv, uint32_t counter, uint32_t elements, uint32_t validity, uint32_t validity_stride,
                  uint32_t first, uint32_t stride, uint64_t count);

/* ---- Log lines (state/log.c) ---- */

struct gb_log_line { uint32_t length; char text[1024]; };

void gb_log_text(struct gb_log_line *, const char *text);
void gb_log_number(struct gb_log_line *, const uint64_t *words, uint32_t count, bool is_signed);
void gb_log_send(struct gb_switch *, const struct gb_log_line *);
void gb_log(struct gb_switch *, const char *line);

#endif
