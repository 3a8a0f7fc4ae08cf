/* push_front and pop_front of header stacks in the packet header vector. */
#include "generated.h"

static void move(uint64_t *run, uint32_t stride, uint32_t to, uint32_t from, uint32_t count) {
    memmove(run + (size_t)to * stride, run + (size_t)from * stride, (size_t)count * stride * sizeof *run);
}

void gb_stack_push(uint64_t *phv, uint32_t counter, uint32_t elements, uint32_t validity, uint32_t validity_stride,
                   uint32_t first, uint32_t stride, uint64_t count) {
    uint32_t pushed = count < elements ? (uint32_t)count : elements;
    move(phv + first, stride, pushed, 0, elements - pushed);
    move(phv + validity, validity_stride, pushed, 0, elements - pushed);
    memset(phv + validity, 0, (size_t)pushed * validity_stride * sizeof *phv);
    uint64_t extracted = phv[counter] + pushed;
    phv[counter] = extracted < elements ? extracted : elements;
}

void gb_stack_pop(uint64_t *phv, uint32_t counter, uint32_t elements, uint32_t validity, uint32_t validity_stride,
                  uint32_t first, uint32_t stride, uint64_t count) {
    uint32_t popped = count < elements ? (uint32_t)count : elements;
    move(phv + first, stride, 0, popped, elements - popped);
    move(phv + validity, validity_stride, 0, popped, elements - popped);
    memset(phv + validity + (size_t)(elements - popped) * validity_stride, 0,
           (size_t)popped * validity_stride * sizeof *phv);
    phv[counter] = phv[counter] > popped ? phv[counter] - popped : 0;
}
