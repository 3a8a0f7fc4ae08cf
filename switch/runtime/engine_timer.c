/* Timers: a heap of four children per node, in which the children of a node share few cache lines. */
#include <stdlib.h>

#include "engine_internal.h"

enum { CHILDREN = 4 };

static bool earlier(const struct timer_place *a, const struct timer_place *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void put(struct timer_heap *heap, struct timer_place place, uint32_t position) {
    heap->places[position] = place;
    place.timer->position = position;
}

bool timer_heap_reserve(struct timer_heap *heap, uint32_t more) {
    uint32_t capacity = heap->capacity + more;
    struct timer_place *places = realloc(heap->places, capacity * sizeof *places);
    if (!places)
        return false;
    heap->places = places;
    heap->capacity = capacity;
    return true;
}

static void sift_up(struct timer_heap *heap, struct timer_place place, uint32_t position) {
    while (position > 0) {
        uint32_t parent = (position - 1) / CHILDREN;
        if (!earlier(&place, &heap->places[parent]))
            break;
        put(heap, heap->places[parent], position);
        position = parent;
    }
    put(heap, place, position);
}

static void sift_down(struct timer_heap *heap, struct timer_place place, uint32_t position) {
    for (;;) {
        uint32_t child = position * CHILDREN + 1;
        if (child >= heap->count)
            break;
        uint32_t end = child + CHILDREN < heap->count ? child + CHILDREN : heap->count;
        uint32_t first = child;
        while (++child < end)
            if (earlier(&heap->places[child], &heap->places[first]))
                first = child;
        if (!earlier(&heap->places[first], &place))
            break;
        put(heap, heap->places[first], position);
        position = first;
    }
    put(heap, place, position);
}

void timer_arm(struct timer_heap *heap, struct timer *timer, uint64_t due_ns) {
    sift_up(heap, (struct timer_place){due_ns, heap->next_sequence++, timer}, heap->count++);
}

void timer_advance(struct timer_heap *heap, struct timer *timer, uint64_t due_ns) {
    sift_up(heap, (struct timer_place){due_ns, heap->next_sequence++, timer}, timer->position);
}

void timer_stop(struct timer_heap *heap, struct timer *timer) {
    if (!timer_armed(timer))
        return;
    uint32_t position = timer->position;
    struct timer_place last = heap->places[--heap->count];
    if (position < heap->count) {
        /* It may belong above or below: one of the two does nothing. */
        sift_down(heap, last, position);
        sift_up(heap, last, last.timer->position);
    }
    timer->position = NO_TIMER;
}

struct timer *timer_pop(struct timer_heap *heap) {
    struct timer *top = heap->places[0].timer;
    struct timer_place last = heap->places[--heap->count];
    if (heap->count > 0)
        sift_down(heap, last, 0);
    top->position = NO_TIMER;
    return top;
}
