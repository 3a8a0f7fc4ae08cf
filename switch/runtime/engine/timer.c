/* Timers: a wheel of short slots (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987) in front of
 * heaps, so that most of them are put and taken in constant time, in exact order all the same.
 *
 * Heaps have four children per node: fewer levels, and the children of a node share few cache lines.
 */
#include <stdlib.h>

#include "engine/internal.h"

enum { CHILDREN = 4 };

/* ---- Heaps ---- */

static inline void put(struct timer_heap *heap, struct timer_place place, uint32_t position) {
    heap->places[position] = place;
    place.timer->position = position;
}

static void sift_up(struct timer_heap *heap, struct timer_place place, uint32_t position) {
    while (position > 0) {
        uint32_t parent = (position - 1) / CHILDREN;
        if (!timer_earlier(&place, &heap->places[parent]))
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
            if (timer_earlier(&heap->places[child], &heap->places[first]))
                first = child;
        if (!timer_earlier(&heap->places[first], &place))
            break;
        put(heap, heap->places[first], position);
        position = first;
    }
    put(heap, place, position);
}

static void heap_push(struct timer_heap *heap, struct timer *timer, enum timer_state state) {
    timer->state = state;
    sift_up(heap, (struct timer_place){timer->due_ns, timer->sequence, timer}, heap->count++);
}

static struct timer *heap_remove(struct timer_heap *heap, uint32_t position) {
    struct timer *timer = heap->places[position].timer;
    struct timer_place last = heap->places[--heap->count];
    if (position < heap->count) {
        /* It may belong above or below: one of the two does nothing. */
        sift_down(heap, last, position);
        if (last.timer->position == position)
            sift_up(heap, last, position);
    }
    timer->state = IDLE;
    return timer;
}

/* ---- The wheel ---- */

static uint64_t slot_of(const struct timer *timer) {
    return timer->due_ns >> WHEEL_SLOT_BITS;
}

static void wheel_put(struct timer_queue *queue, struct timer *timer) {
    uint32_t index = slot_of(timer) % WHEEL_SLOTS;
    struct timer **head = &queue->slots[index];
    timer->state = ON_WHEEL;
    timer->next = *head;
    timer->link = head;
    if (*head)
        (*head)->link = &timer->next;
    *head = timer;
    queue->occupied[index / 64] |= UINT64_C(1) << index % 64;
    queue->occupied_words[index / 64 / 64] |= UINT64_C(1) << index / 64 % 64;
    queue->on_wheel++;
}

static void mark_empty(struct timer_queue *queue, uint32_t index) {
    queue->occupied[index / 64] &= ~(UINT64_C(1) << index % 64);
    if (!queue->occupied[index / 64])
        queue->occupied_words[index / 64 / 64] &= ~(UINT64_C(1) << index / 64 % 64);
}

static void wheel_remove(struct timer_queue *queue, struct timer *timer) {
    uint32_t index = slot_of(timer) % WHEEL_SLOTS;
    *timer->link = timer->next;
    if (timer->next)
        timer->next->link = timer->link;
    if (!queue->slots[index])
        mark_empty(queue, index);
    queue->on_wheel--;
    timer->state = IDLE;
}

/* The first set bit of `bits` from `from` on, or `count`. */
static uint32_t next_bit(const uint64_t *bits, uint32_t from, uint32_t count) {
    for (uint32_t word = from / 64; word < count / 64; word++, from = word * 64) {
        uint64_t rest = bits[word] >> from % 64;
        if (rest)
            return from + (uint32_t)__builtin_ctzll(rest);
    }
    return count;
}

/* The first slot of the wheel with timers from index `from` on, without going round, or WHEEL_SLOTS. */
static uint32_t next_index(const struct timer_queue *queue, uint32_t from) {
    uint32_t word = from / 64;
    uint64_t rest = queue->occupied[word] >> from % 64;
    if (rest)
        return from + (uint32_t)__builtin_ctzll(rest);
    if (word + 1 == WHEEL_SLOTS / 64)
        return WHEEL_SLOTS;
    word = next_bit(queue->occupied_words, word + 1, WHEEL_SLOTS / 64);
    return word == WHEEL_SLOTS / 64 ? WHEEL_SLOTS : word * 64 + (uint32_t)__builtin_ctzll(queue->occupied[word]);
}

static uint64_t next_wheel_slot(const struct timer_queue *queue) {
    if (!queue->on_wheel)
        return UINT64_MAX;
    uint32_t start = (uint32_t)((queue->slot + 1) % WHEEL_SLOTS), index = next_index(queue, start);
    if (index == WHEEL_SLOTS)
        index = next_index(queue, 0);
    return queue->slot + 1 + (index + WHEEL_SLOTS - start) % WHEEL_SLOTS;
}

void timer_turn(struct timer_queue *queue) {
    struct timer_heap *far = &queue->far;
    uint64_t far_slot = far->count ? far->places[0].due_ns >> WHEEL_SLOT_BITS : UINT64_MAX;
    uint64_t wheel_slot = next_wheel_slot(queue);
    queue->slot = far_slot < wheel_slot ? far_slot : wheel_slot;
    if (wheel_slot == queue->slot) {
        uint32_t index = (uint32_t)(wheel_slot % WHEEL_SLOTS);
        struct timer *timer = queue->slots[index];
        queue->slots[index] = NULL;
        mark_empty(queue, index);
        while (timer) {
            struct timer *next = timer->next;
            heap_push(&queue->near, timer, NEAR);
            queue->on_wheel--;
            timer = next;
        }
    }
    while (far->count && far->places[0].due_ns >> WHEEL_SLOT_BITS == queue->slot)
        heap_push(&queue->near, heap_remove(far, 0), NEAR);
}

/* ---- All of them ---- */

bool timer_queue_reserve(struct timer_queue *queue, uint32_t more) {
    uint32_t capacity = queue->capacity + more;
    struct timer_heap *heaps[] = {&queue->near, &queue->far};
    for (int i = 0; i < 2; i++) {
        struct timer_place *places = realloc(heaps[i]->places, capacity * sizeof *places);
        if (!places)
            return false;
        heaps[i]->places = places;
    }
    queue->capacity = capacity;
    return true;
}

void timer_queue_free(struct timer_queue *queue) {
    free(queue->near.places);
    free(queue->far.places);
}

static void arm(struct timer_queue *queue, struct timer *timer, uint64_t due_ns, uint64_t sequence) {
    timer->due_ns = due_ns;
    timer->sequence = sequence;
    queue->count++;
    uint64_t slot = slot_of(timer);
    if (slot <= queue->slot)
        heap_push(&queue->near, timer, NEAR);
    else if (slot < queue->slot + WHEEL_SLOTS)
        wheel_put(queue, timer);
    else
        heap_push(&queue->far, timer, FAR);
}

static uint64_t take_sequence(struct timer_queue *queue, struct timer *timer, struct packet *packet) {
    if (queue->causes)
        causes_note(queue->causes, timer, packet);
    return (*queue->next_sequence)++;
}

void timer_arm(struct timer_queue *queue, struct timer *timer, uint64_t due_ns) {
    arm(queue, timer, due_ns, take_sequence(queue, timer, NULL));
}

void timer_renumber(struct timer_queue *queue, struct timer *timer, uint64_t sequence) {
    timer->sequence = sequence;
    if (timer->state == NEAR)
        queue->near.places[timer->position].sequence = sequence;
    else if (timer->state == FAR)
        queue->far.places[timer->position].sequence = sequence;
}

void timer_stop(struct timer_queue *queue, struct timer *timer) {
    switch (timer->state) {
    case IDLE:
        return;
    case NEAR:
        heap_remove(&queue->near, timer->position);
        break;
    case ON_WHEEL:
        wheel_remove(queue, timer);
        break;
    case FAR:
        heap_remove(&queue->far, timer->position);
    }
    queue->count--;
}

struct timer *timer_pop(struct timer_queue *queue) {
    if (!queue->near.count)
        timer_turn(queue);
    queue->count--;
    return heap_remove(&queue->near, 0);
}

/* ---- Timed lists ---- */

void timed_put(struct timer_queue *queue, struct packet_list *list, struct timer *timer, struct packet *packet,
               uint64_t due_ns) {
    timed_put_numbered(queue, list, timer, packet, due_ns, take_sequence(queue, timer, packet));
}

void timed_put_numbered(struct timer_queue *queue, struct packet_list *list, struct timer *timer,
                        struct packet *packet, uint64_t due_ns, uint64_t sequence) {
    packet->due_ns = due_ns;
    packet->sequence = sequence;
    list_insert(list, packet);
    if (list->first == packet) {
        timer_stop(queue, timer);
        arm(queue, timer, due_ns, sequence);
    }
}

struct packet *timed_pop(struct timer_queue *queue, struct packet_list *list, struct timer *timer, uint64_t now_ns) {
    struct packet *packet = list->first;
    if (!packet)
        return NULL;
    struct timer_place place = {packet->due_ns, packet->sequence, timer};
    if (place.due_ns > now_ns || (queue->near.count && timer_earlier(&queue->near.places[0], &place)) ||
        (queue->one_by_one && place.sequence != timer->sequence)) {
        arm(queue, timer, place.due_ns, place.sequence);
        return NULL;
    }
    return list_pop(list);
}
