/* Timers: a wheel of short slots (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987) in front of
 * heaps, so that most of them are put and taken in constant time, in exact order all the same.
 *
 * Where many devices do something at the same time, a slot has thousands of timers. They are put in order once, when its
 * time has come. Most were armed in this order; then that takes no more than looking. So it is also known which timers
 * come soon, and what they will need, which is in no cache of the processor, is looked at.
 *
 * Heaps have four children per node: fewer levels, and the children of a node share few cache lines.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

enum {
    CHILDREN = 4,
    FEW = 12,                       /* are put in order by insertion */
    CHUNK_BITS = 3,                 /* of a position on the wheel: the place in its chunk */
    FIRST_RESERVED = 64,
};

/* In networks with fewer timers, what they need is in the processor's caches anyway. Sanitizers are to see it all. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { LOOK_AHEAD_FROM = 1 };
#else
enum { LOOK_AHEAD_FROM = 4096 };
#endif
/* Groups of so many timers are looked at together, so that their ways to memory overlap: each group step by step, from
 * LOOK_STEPS groups before it fires on. The first step is for the timers themselves. */
enum { LOOK_GROUP = 8, LOOK_STEPS = 1 + TIMER_PREFETCH_STEPS };
/* So many slots become present together, so that there are groups, until they have ENOUGH_PRESENT timers. */
enum { MOST_SLOTS = 16, ENOUGH_PRESENT = 2 * LOOK_GROUP };

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

static uint64_t slot_at(uint64_t due_ns) {
    return due_ns >> WHEEL_SLOT_BITS;
}

static struct timer_place *place_on_wheel(const struct timer_queue *queue, const struct timer *timer) {
    return &queue->chunks[timer->position >> CHUNK_BITS].places[timer->position & ((1 << CHUNK_BITS) - 1)];
}

static uint32_t chunk_take(struct timer_queue *queue) {
    uint32_t number = queue->free_chunk;
    if (number)
        queue->free_chunk = queue->chunks[number].next;
    else
        number = ++queue->used_chunks;
    return number;
}

static void chunk_give(struct timer_queue *queue, uint32_t number) {
    queue->chunks[number].next = queue->free_chunk;
    queue->free_chunk = number;
}

static void wheel_put(struct timer_queue *queue, struct timer *timer) {
    uint32_t index = (uint32_t)(slot_at(timer->due_ns) % WHEEL_SLOTS), number = queue->slots[index];
    if (!number || queue->chunks[number].count == CHUNK_PLACES) {
        uint32_t first = chunk_take(queue);
        queue->chunks[first].next = number;
        queue->chunks[first].count = 0;
        queue->slots[index] = number = first;
        queue->occupied[index / 64] |= UINT64_C(1) << index % 64;
        queue->occupied_words[index / 64 / 64] |= UINT64_C(1) << index / 64 % 64;
    }
    struct timer_chunk *chunk = &queue->chunks[number];
    timer->state = ON_WHEEL;
    timer->position = number << CHUNK_BITS | chunk->count;
    chunk->places[chunk->count++] = (struct timer_place){timer->due_ns, timer->sequence, timer};
    queue->on_wheel++;
}

static void mark_empty(struct timer_queue *queue, uint32_t index) {
    queue->occupied[index / 64] &= ~(UINT64_C(1) << index % 64);
    if (!queue->occupied[index / 64])
        queue->occupied_words[index / 64 / 64] &= ~(UINT64_C(1) << index / 64 % 64);
}

/* Its place goes to the one that was put last. */
static void wheel_remove(struct timer_queue *queue, struct timer *timer) {
    uint32_t index = (uint32_t)(slot_at(timer->due_ns) % WHEEL_SLOTS), number = queue->slots[index];
    struct timer_chunk *chunk = &queue->chunks[number];
    struct timer_place last = chunk->places[--chunk->count];
    if (last.timer != timer) {
        *place_on_wheel(queue, timer) = last;
        last.timer->position = timer->position;
    }
    if (chunk->count == 0) {
        queue->slots[index] = chunk->next;
        chunk_give(queue, number);
        if (!queue->slots[index])
            mark_empty(queue, index);
    }
    queue->on_wheel--;
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

/* ---- The present slot ---- */

static void sort_few(struct timer_place *places, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        struct timer_place place = places[i];
        uint32_t at = i;
        for (; at > 0 && timer_earlier(&place, &places[at - 1]); at--)
            places[at] = places[at - 1];
        places[at] = place;
    }
}

/* By merging: what is in order already is left as it is. */
static void sort(struct timer_place *places, uint32_t count, struct timer_place *room) {
    if (count <= FEW) {
        sort_few(places, count);
        return;
    }
    uint32_t half = count / 2;
    sort(places, half, room);
    sort(places + half, count - half, room);
    if (timer_earlier(&places[half - 1], &places[half]))
        return;
    memcpy(room, places, half * sizeof *places);
    for (uint32_t from = 0, other = half, to = 0; from < half; to++)
        places[to] = other < count && timer_earlier(&places[other], &room[from]) ? places[other++] : room[from++];
}

/* The chunk put last comes first: places are filled from behind. */
static void take_slot(struct timer_queue *queue, uint32_t index) {
    struct timer_place *end = queue->present + queue->first_present, *at = end;
    bool in_order = true;
    for (uint32_t number = queue->slots[index], next; number; number = next) {
        struct timer_chunk *chunk = &queue->chunks[number];
        next = chunk->next;
        for (uint32_t i = chunk->count; i-- > 0; at--) {
            in_order &= timer_earlier(&chunk->places[i], at);
            at[-1] = chunk->places[i];
        }
        chunk_give(queue, number);
    }
    uint32_t count = (uint32_t)(end - at);
    if (!in_order)
        sort(at, count, queue->sorting);
    queue->slots[index] = 0;
    mark_empty(queue, index);
    queue->first_present -= count;
    queue->on_wheel -= count;
}

static bool is_present(const struct timer_queue *queue, const struct timer *timer) {
    return timer->state == ON_WHEEL && slot_at(timer->due_ns) <= queue->slot;
}

static struct timer_place *present_place(const struct timer_queue *queue, const struct timer *timer) {
    struct timer_place wanted = {timer->due_ns, timer->sequence, NULL};
    uint32_t low = queue->first_present, high = queue->present_end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timer_earlier(&queue->present[middle], &wanted))
            low = middle + 1;
        else
            high = middle;
    }
    return &queue->present[low];
}

/* The first of the present ones, or the end, is one that was not stopped. */
static void skip_stopped(struct timer_queue *queue) {
    while (queue->first_present < queue->present_end && !queue->present[queue->first_present].timer)
        queue->first_present++;
}

static void look_at(const struct timer_queue *queue, unsigned step, uint32_t from, uint32_t end) {
    for (uint32_t i = from; i < end && i < queue->present_end; i++) {
        const struct timer *timer = queue->present[i].timer;
        if (!timer)
            continue;
        if (step == 0)
            gb_prefetch_line(timer);
        else if (timer->kind->prefetch)
            timer->kind->prefetch(timer->owner, step - 1);
    }
}

static void prefetch(struct timer_queue *queue) {
    uint32_t group = queue->prefetch_from;
    for (unsigned step = 0; step < LOOK_STEPS; step++) {
        uint32_t from = group + (LOOK_STEPS - step) * LOOK_GROUP;
        look_at(queue, step, from, from + LOOK_GROUP);
    }
    queue->prefetch_from += LOOK_GROUP;
}

/* What the first groups have missed. */
static void begin_to_prefetch(struct timer_queue *queue) {
    queue->prefetch_from = queue->first_present + LOOK_GROUP;
    for (unsigned step = 0; step < LOOK_STEPS; step++)
        look_at(queue, step, queue->first_present, queue->prefetch_from + (LOOK_STEPS - step) * LOOK_GROUP);
}

static uint32_t timers_of(const struct timer_queue *queue, uint32_t index) {
    uint32_t count = 0;
    for (uint32_t number = queue->slots[index]; number; number = queue->chunks[number].next)
        count += queue->chunks[number].count;
    return count;
}

/* The slot, and those behind it that come before `before`. */
static void take_slots(struct timer_queue *queue, uint64_t slot, uint64_t before) {
    uint32_t indices[MOST_SLOTS], count = 0, timers = 0;
    do {
        indices[count] = (uint32_t)(slot % WHEEL_SLOTS);
        timers += timers_of(queue, indices[count++]);
        queue->slot = slot;
        if (count == MOST_SLOTS || timers >= ENOUGH_PRESENT || queue->on_wheel == timers)
            break;
        slot = next_wheel_slot(queue);
    } while (slot < before);
    while (count > 0)
        take_slot(queue, indices[--count]);
}

void timer_turn(struct timer_queue *queue) {
    struct timer_heap *far = &queue->far;
    uint64_t far_slot = far->count ? slot_at(far->places[0].due_ns) : UINT64_MAX;
    uint64_t wheel_slot = next_wheel_slot(queue);
    bool many = queue->reserved >= LOOK_AHEAD_FROM;
    if (wheel_slot <= far_slot)
        take_slots(queue, wheel_slot, many ? far_slot : 0);
    else
        queue->slot = far_slot;
    while (far->count && slot_at(far->places[0].due_ns) == queue->slot)
        heap_push(&queue->late, heap_remove(far, 0), LATE);
    if (many)
        begin_to_prefetch(queue);
}

/* ---- All of them ---- */

/* Chunks for so many timers: there are never more than that, and in each slot all but one are full. */
static uint32_t chunks_for(uint32_t timers) {
    uint32_t full = timers / CHUNK_PLACES + WHEEL_SLOTS;
    return 1 + (timers < full ? timers : full);
}

static void *grown(void *old, size_t old_bytes, size_t bytes) {
    void *larger = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (larger && old_bytes)
        memcpy(larger, old, old_bytes);
    return larger;
}

static bool resize_heap(struct timer_heap *heap, uint32_t capacity) {
    struct timer_place *places = realloc(heap->places, capacity * sizeof *places);
    if (places)
        heap->places = places;
    return places;
}

static void free_places(struct timer_queue *queue) {
    free(queue->present);
    free(queue->sorting);
    free(queue->chunks);
}

/* Let there be room for so many. */
static bool resize(struct timer_queue *queue, uint32_t capacity) {
    struct timer_place *present = calloc(capacity + 1, sizeof *present);
    struct timer_place *sorting = calloc(capacity / 2 + 1, sizeof *sorting);
    struct timer_chunk *chunks = grown(queue->chunks, (queue->used_chunks + 1) * sizeof *chunks * (queue->chunks != NULL),
                                       chunks_for(capacity) * sizeof *chunks);
    if (!present || !sorting || !chunks || !resize_heap(&queue->late, capacity) || !resize_heap(&queue->far, capacity)) {
        free(present);
        free(sorting);
        free(chunks);
        return false;
    }
    uint32_t count = queue->present_end - queue->first_present;
    if (count)
        memcpy(present + capacity - count, queue->present + queue->first_present, count * sizeof *present);
    present[capacity] = (struct timer_place){UINT64_MAX, UINT64_MAX, NULL};
    free_places(queue);
    queue->present = present;
    queue->sorting = sorting;
    queue->chunks = chunks;
    queue->prefetch_from += capacity - queue->present_end;
    queue->first_present = capacity - count;
    queue->present_end = capacity;
    return true;
}

bool timer_queue_open(struct timer_queue *queue) {
    return resize(queue, FIRST_RESERVED);
}

bool timer_queue_reserve(struct timer_queue *queue, uint32_t more) {
    uint32_t wanted = queue->reserved + more, room = queue->present_end;
    if (wanted > room && !resize(queue, wanted > 2 * room ? wanted : 2 * room))
        return false;
    queue->reserved = wanted;
    return true;
}

void timer_queue_free(struct timer_queue *queue) {
    free_places(queue);
    free(queue->late.places);
    free(queue->far.places);
}

static void arm(struct timer_queue *queue, struct timer *timer, uint64_t due_ns, uint64_t sequence) {
    timer->due_ns = due_ns;
    timer->sequence = sequence;
    queue->count++;
    uint64_t slot = slot_at(due_ns);
    if (slot <= queue->slot)
        heap_push(&queue->late, timer, LATE);
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

uint64_t timer_number(struct timer_queue *queue) {
    return take_sequence(queue, NULL, NULL);
}

void timer_arm(struct timer_queue *queue, struct timer *timer, uint64_t due_ns) {
    arm(queue, timer, due_ns, take_sequence(queue, timer, NULL));
}

void timer_renumber(struct timer_queue *queue, struct timer *timer, uint64_t sequence) {
    if (is_present(queue, timer))
        present_place(queue, timer)->sequence = sequence;
    else if (timer->state == ON_WHEEL)
        place_on_wheel(queue, timer)->sequence = sequence;
    else if (timer->state == LATE)
        queue->late.places[timer->position].sequence = sequence;
    else if (timer->state == FAR)
        queue->far.places[timer->position].sequence = sequence;
    timer->sequence = sequence;
}

void timer_stop(struct timer_queue *queue, struct timer *timer) {
    if (timer->state == IDLE)
        return;
    if (is_present(queue, timer)) {
        present_place(queue, timer)->timer = NULL;
        skip_stopped(queue);
    } else if (timer->state == ON_WHEEL) {
        wheel_remove(queue, timer);
    } else {
        heap_remove(timer->state == LATE ? &queue->late : &queue->far, timer->position);
    }
    timer->state = IDLE;
    queue->count--;
}

struct timer *timer_pop(struct timer_queue *queue) {
    const struct timer_place *next = timer_next(queue);
    queue->count--;
    if (next != &queue->present[queue->first_present])
        return heap_remove(&queue->late, 0);
    struct timer *timer = next->timer;
    timer->state = IDLE;
    queue->first_present++;
    skip_stopped(queue);
    if (queue->first_present >= queue->prefetch_from && queue->reserved >= LOOK_AHEAD_FROM)
        prefetch(queue);
    return timer;
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
    if (place.due_ns > now_ns || timer_earlier(timer_first(queue), &place) ||
        (queue->one_by_one && place.sequence != timer->sequence)) {
        arm(queue, timer, place.due_ns, place.sequence);
        return NULL;
    }
    return list_pop(list);
}
