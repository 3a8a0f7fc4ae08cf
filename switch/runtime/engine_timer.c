/* Timers of links: a binary heap, since each direction of a link has at most two. */
#include <stdlib.h>

#include "engine_internal.h"

static bool earlier(const struct timer *a, const struct timer *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void place(struct timer_heap *heap, struct timer *timer, uint32_t position) {
    heap->timers[position] = timer;
    timer->position = position;
}

bool timer_heap_reserve(struct timer_heap *heap, uint32_t more) {
    uint32_t capacity = heap->capacity + more;
    struct timer **timers = realloc(heap->timers, capacity * sizeof *timers);
    if (!timers)
        return false;
    heap->timers = timers;
    heap->capacity = capacity;
    return true;
}

static void sift_up(struct timer_heap *heap, struct timer *timer, uint32_t position) {
    while (position > 0 && earlier(timer, heap->timers[(position - 1) / 2])) {
        place(heap, heap->timers[(position - 1) / 2], position);
        position = (position - 1) / 2;
    }
    place(heap, timer, position);
}

void timer_arm(struct timer_heap *heap, struct timer *timer, uint64_t due_ns) {
    timer->due_ns = due_ns;
    timer->sequence = heap->next_sequence++;
    sift_up(heap, timer, heap->count++);
}

void timer_advance(struct timer_heap *heap, struct timer *timer, uint64_t due_ns) {
    timer->due_ns = due_ns;
    timer->sequence = heap->next_sequence++;
    sift_up(heap, timer, timer->position);
}

struct timer *timer_pop(struct timer_heap *heap) {
    struct timer *top = heap->timers[0];
    struct timer *last = heap->timers[--heap->count];
    uint32_t position = 0;
    while (position * 2 + 1 < heap->count) {
        uint32_t child = position * 2 + 1;
        if (child + 1 < heap->count && earlier(heap->timers[child + 1], heap->timers[child]))
            child++;
        if (!earlier(heap->timers[child], last))
            break;
        place(heap, heap->timers[child], position);
        position = child;
    }
    if (heap->count > 0)
        place(heap, last, position);
    top->position = NO_TIMER;
    return top;
}
