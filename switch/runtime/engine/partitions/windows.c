/* Partitions side by side, each on a thread of its own: conservative simulation in windows of time (Nicol, "The cost of
 * conservative synchronization in parallel discrete event simulations", J. ACM 40(2), 1993).
 *
 * What a partition does at time t reaches another one at t + the delay of a link between them at the earliest. So all
 * partitions can work up to the end of a window, which begins with the first event of all and is as long as the least of
 * these delays; then they wait for each other, and hand over what crosses.
 *
 * The run is the same, to the last byte, as that of one thread. There, events of the same time are worked on in the order
 * in which they were caused, by numbers that count all that is caused. In a window each partition counts by itself, from
 * the same number on. That orders its own events rightly, as all that others caused was known before. Afterwards the
 * partitions' events are merged into the order of one thread, and what they caused gets the numbers that it has there.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/internal.h"
#include "engine/partitions/windows.h"
#include "engine/transport/card.h"
#include "engine/transport/collectives/collective.h"
#include "trace.h"

enum {
    LOOK_WINDOWS = 64,              /* after so many, and so on: are they enough? */
    SPINS = 4000,                   /* before another thread may have the processor */
    MOST_PUT_OFF = 10,              /* times the events before windows are doubled, as windows were slower */
    FEWEST_WINDOWS = 8,             /* for so many nobody has to act, or they are not begun */
};

/* ---- Waiting for each other ---- */

#if defined(__x86_64__) || defined(__i386__)
#define RELAX __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX __asm__ volatile("yield")
#else
#define RELAX (void)0
#endif

static void barrier_wait(struct windows *windows) {
    unsigned turn = atomic_load_explicit(&windows->turn, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&windows->arrived, 1, memory_order_acq_rel) + 1 == windows->count) {
        atomic_store_explicit(&windows->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&windows->turn, turn + 1, memory_order_release);
        return;
    }
    for (unsigned spins = 0; atomic_load_explicit(&windows->turn, memory_order_acquire) == turn; spins++) {
        if (spins < SPINS)
            RELAX;
        else
            sched_yield();
    }
}

/* ---- A window ---- */

static struct event *log_event(struct side *side, uint64_t due_ns, uint64_t sequence) {
    struct events *events = &side->events[side->parity];
    if (events->count == events->capacity && !windows_grow((void **)&events->events, &events->capacity, sizeof *events->events))
        abort();
    events->events[events->count] = (struct event){due_ns, sequence, 0, false};
    return &events->events[events->count++];
}

/* Everything of this moment has happened: one of the cards sends what became ready because of it. */
static void let_card_act(struct partition *part, struct side *side) {
    log_event(side, part->now_ns, collectives_own_order(part))->is_last = true;
    part->clock_ns = part->now_ns;
    collectives_act_next(part);
}

/* Whether the limit of events at one time was kept. */
static bool work(struct partition *part, struct side *side, uint64_t end_ns, uint64_t max_events) {
    struct timer_queue *timers = &part->timers;
    struct packet *packet;
    for (uint64_t at_once = 0;;) {
        const struct timer_place *next = timer_next(timers);
        if (part->acting_first && next->due_ns > part->now_ns) {
            let_card_act(part, side);
        } else if (next->due_ns >= end_ns) {
            return true;
        } else {
            log_event(side, next->due_ns, next->sequence);
            struct timer *timer = timer_pop(timers);
            if (timer->due_ns > part->now_ns)
                at_once = 0;
            part->now_ns = part->clock_ns = timer->due_ns;
            partition_count_lateness(part, 0);
            timer->kind->fire(part, timer->owner);
        }
        while ((packet = list_pop(&side->ready))) {
            if (++at_once >= max_events)
                return false;
            partition_work_on(part, packet);
        }
        if (++at_once >= max_events)
            return false;
        struct events *events = &side->events[side->parity];
        events->events[events->count - 1].caused = side->causes.count;
    }
}

static void run_window(struct windows *windows, struct side *side, uint64_t end_ns, bool slow) {
    struct partition *part = side->part;
    side->slow[side->parity] = slow;
    for (uint32_t i = 0; i < windows->count; i++)
        side->boxes[side->parity][i].count = 0;
    side->events[side->parity].count = 0;
    side->crossing_ns[side->parity] = UINT64_MAX;
    side->kept_limit[side->parity] = work(part, side, end_ns, windows->max_events);
    side->tells[side->parity] = part->due_first;
    side->next_ns[side->parity] = timer_next(&part->timers)->due_ns;
    side->caused[side->parity] = side->causes.count;
}

/* ---- Afterwards ---- */

/* Who hands a packet over gets an empty one of its size, if there is one. */
static void give_back(struct side *from, struct side *to, const struct packet *packet) {
    struct packet *empty = packet_pool_give(&from->part->pool, packet->size);
    if (empty)
        list_append(&from->empties[from->parity][to - from->part->engine->windows->sides], empty);
}

/* What another processor wrote is a long way away: all of it is looked at at once, before it is needed. */
static void look_at_crossings(const struct crossings *box) {
    for (uint32_t i = 0; i < box->count; i++) {
        const struct crossing *crossing = &box->crossings[i];
        gb_look_at_lines(crossing->packet, gb_lines_of(sizeof *crossing->packet));
        gb_look_at_line(crossing->data);
        gb_look_at_line(&crossing->direction->arrival);
    }
}

static void take_crossings(struct windows *windows, struct side *side) {
    struct partition *part = side->part;
    uint32_t own = (uint32_t)(side - windows->sides);
    for (uint32_t i = 0; i < windows->count; i++) {
        struct side *other = &windows->sides[i];
        const struct crossings *box = &other->boxes[side->parity][own];
        look_at_crossings(box);
        for (uint32_t j = 0; j < box->count; j++) {
            const struct crossing *crossing = &box->crossings[j];
            part->pool.live++;
            give_back(side, other, crossing->packet);
            timed_put_numbered(&part->timers, &crossing->direction->flight, &crossing->direction->arrival,
                               crossing->packet, crossing->due_ns, side->numbers[i].of[crossing->number]);
        }
        part->pool.live -= side->boxes[side->parity][i].count;
    }
}

static void take_empties(struct windows *windows, struct side *side) {
    uint32_t own = (uint32_t)(side - windows->sides), before = !side->parity;
    for (uint32_t i = 0; i < windows->count; i++) {
        struct packet *empty;
        while ((empty = list_pop(&windows->sides[i].empties[before][own])))
            packet_pool_take(&side->part->pool, empty);
    }
}

/* When the next window begins; UINT64_MAX: nothing is left. */
static uint64_t next_begin(const struct windows *windows, uint32_t parity) {
    uint64_t begin_ns = UINT64_MAX;
    for (uint32_t i = 0; i < windows->count; i++) {
        const struct side *side = &windows->sides[i];
        uint64_t own_ns = side->next_ns[parity] < side->crossing_ns[parity] ? side->next_ns[parity]
                                                                            : side->crossing_ns[parity];
        if (own_ns < begin_ns)
            begin_ns = own_ns;
    }
    return begin_ns;
}

static uint64_t end_of_window(const struct windows *windows, uint64_t begin_ns) {
    uint64_t last_ns = windows->until_ns;
    return last_ns - begin_ns < windows->lookahead_ns ? last_ns + 1 : begin_ns + windows->lookahead_ns;
}

static bool kept_limits(const struct windows *windows, uint32_t parity) {
    bool kept = true;
    for (uint32_t i = 0; i < windows->count; i++)
        kept &= windows->sides[i].kept_limit[parity];
    return kept;
}

static bool an_agent_is_due(const struct windows *windows, uint32_t parity) {
    bool tells = false;
    for (uint32_t i = 0; i < windows->count; i++)
        tells |= windows->sides[i].tells[parity];
    return tells;
}

/* The same decisions on every thread, as all look at the same. The first looks at the clock: where others want the
 * processors one thread is sooner done, as several wait for whichever of them has none. */
static void run_side(struct windows *windows, struct side *side) {
    uint64_t base = windows->base, begin_ns = windows->begin_ns, events = 0, since_ns = real_clock();
    uint64_t pause_ns = since_ns + GB_MOST_RUN_NS;
    bool slow = false;
    for (uint32_t done = 1;; done++) {
        side->paused[side->parity] = side == windows->sides && done % LOOK_WINDOWS == 0 && real_clock() > pause_ns;
        side->causes.base = base;
        side->next_sequence = base;
        run_window(windows, side, end_of_window(windows, begin_ns), slow);
        barrier_wait(windows);
        windows_merge(windows, side, base);
        windows_renumber(side, base);
        take_empties(windows, side);
        take_crossings(windows, side);
        for (uint32_t i = 0; i < windows->count; i++) {
            base += windows->sides[i].caused[side->parity];
            events += windows->sides[i].events[side->parity].count;
        }
        begin_ns = next_begin(windows, side->parity);
        bool kept = kept_limits(windows, side->parity), told_slow = windows->sides[0].slow[side->parity];
        bool paused = windows->sides[0].paused[side->parity];
        bool stops = !kept || told_slow || paused || an_agent_is_due(windows, side->parity);
        if (done % LOOK_WINDOWS == 0) {
            stops |= events < LOOK_WINDOWS * windows->fewest_events;
            if (side == windows->sides && windows->alone_ns > 0) {
                uint64_t now_ns = real_clock();
                slow = (double)(now_ns - since_ns) > windows->alone_ns * (double)events;
                since_ns = now_ns;
            }
            events = 0;
        }
        side->parity = !side->parity;
        if (stops || begin_ns > windows->until_ns || begin_ns == UINT64_MAX) {
            side->end = (struct windows_end){base, begin_ns, kept, done > LOOK_WINDOWS, told_slow, paused};
            return;
        }
    }
}

/* ---- Threads ---- */

static void *side_thread(void *argument) {
    struct side *side = argument;
    struct windows *windows = side->part->engine->windows;
    prctl(PR_SET_NAME, "partition");
    for (uint32_t round = 1;; round++) {
        pthread_mutex_lock(&windows->mutex);
        while (windows->round != round && !windows->stopping)
            pthread_cond_wait(&windows->begins, &windows->mutex);
        bool stopping = windows->stopping;
        pthread_mutex_unlock(&windows->mutex);
        if (stopping)
            return NULL;
        run_side(windows, side);
        barrier_wait(windows);
    }
}

static bool start_threads(struct gb_engine *engine, struct windows *windows) {
    /* Signals are for Python's main thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (windows->started < engine->partition_count - 1 &&
           pthread_create(&windows->threads[windows->started], NULL, side_thread,
                          &windows->sides[windows->started + 1]) == 0)
        windows->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return windows->started == engine->partition_count - 1;
}

static void stop_threads(struct windows *windows) {
    pthread_mutex_lock(&windows->mutex);
    windows->stopping = true;
    pthread_cond_broadcast(&windows->begins);
    pthread_mutex_unlock(&windows->mutex);
    for (uint32_t i = 0; i < windows->started; i++)
        pthread_join(windows->threads[i], NULL);
}

static struct windows *windows_create(struct gb_engine *engine) {
    struct windows *windows = aligned_alloc(_Alignof(struct windows), sizeof *windows);
    if (!windows)
        return NULL;
    memset(windows, 0, sizeof *windows);
    engine->windows = windows;
    windows->count = engine->partition_count;
    pthread_mutex_init(&windows->mutex, NULL);
    pthread_cond_init(&windows->begins, NULL);
    for (uint32_t i = 0; i < windows->count; i++)
        windows->sides[i].part = &engine->partitions[i];
    if (start_threads(engine, windows))
        return windows;
    windows_free(engine);
    return NULL;
}

static void side_free(struct side *side) {
    for (uint32_t parity = 0; parity < 2; parity++) {
        free(side->events[parity].events);
        for (uint32_t i = 0; i < GB_MAX_PARTITIONS; i++)
            free(side->boxes[parity][i].crossings);

    }
    for (uint32_t i = 0; i < GB_MAX_PARTITIONS; i++)
        free(side->numbers[i].of);
    free(side->causes.causes);
}

void windows_free(struct gb_engine *engine) {
    struct windows *windows = engine->windows;
    if (!windows)
        return;
    stop_threads(windows);
    for (uint32_t i = 0; i < windows->count; i++)
        side_free(&windows->sides[i]);
    pthread_cond_destroy(&windows->begins);
    pthread_mutex_destroy(&windows->mutex);
    free(windows);
    engine->windows = NULL;
}

/* ---- Whether, and how ---- */

/* The least delay of a link, which packets need from one partition to another; 0: somebody outside may have to act at
 * any time, or sees the order in which partitions act. */
static uint64_t lookahead(const struct gb_engine *engine) {
    uint64_t least_ns = UINT64_MAX;
    if (engine->partition_count == 1 || engine->ready.first || engine->capture_count || gb_recorder_used())
        return 0;
    for (uint32_t i = 0; i < engine->device_count && !engine->expects_no_upcalls; i++)
        if (engine->devices[i]->listens)
            return 0;
    for (uint32_t i = 0; i < engine->io_count; i++)
        if (memory_port_tells(engine->ios[i]))
            return 0;
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        const struct gb_link_model *model = engine->directions[i]->whole->model;
        uint64_t own_ns = model->delay_ns - model->jitter_ns;
        if (engine->directions[i]->whole->reported && own_ns < least_ns)
            least_ns = own_ns;
    }
    return least_ns;
}

static void enter(struct gb_engine *engine, struct windows *windows, uint64_t begin_ns) {
    windows->base = engine->next_sequence;
    windows->begin_ns = begin_ns;
    for (uint32_t i = 0; i < windows->count; i++) {
        struct side *side = &windows->sides[i];
        side->parity = 0;
        side->part->side = side;
        side->part->ready = &side->ready;
        side->part->timers.next_sequence = &side->next_sequence;
        side->part->timers.causes = &side->causes;
    }
}

static void leave(struct gb_engine *engine, struct windows *windows) {
    for (uint32_t i = 0; i < windows->count; i++) {
        struct side *side = &windows->sides[i];
        side->part->side = NULL;
        side->part->ready = &engine->ready;
        side->part->timers.next_sequence = &engine->next_sequence;
        side->part->timers.causes = NULL;
        for (uint32_t parity = 0; parity < 2; parity++)
            for (uint32_t j = 0; j < windows->count; j++) {
                struct packet *empty;
                while ((empty = list_pop(&side->empties[parity][j])))
                    packet_pool_take(&windows->sides[j].part->pool, empty);
            }
        if (side->part->now_ns > engine->now_ns)
            engine->now_ns = side->part->now_ns;
    }
    engine->next_sequence = windows->sides[0].end.sequence;
}

/* The last time at which agents are known to have nothing to do; until_ns, if that is earlier. 0: not for long. */
static uint64_t last_silent_ns(const struct gb_engine *engine, uint64_t lookahead_ns, uint64_t until_ns) {
    uint64_t silence_ns = engine->consumer_count ? consumers_silence_ns(engine) : UINT64_MAX;
    if (silence_ns < FEWEST_WINDOWS * lookahead_ns)
        return 0;
    return until_ns - engine->now_ns < silence_ns ? until_ns : engine->now_ns + silence_ns - 1;
}

int windows_run(struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, double alone_ns) {
    const struct partition *next = partitions_next(engine);
    uint64_t lookahead_ns = lookahead(engine), wanted_ns = until_ns;
    if (!next || !lookahead_ns || !(until_ns = last_silent_ns(engine, lookahead_ns, until_ns)) ||
        timer_first(&next->timers)->due_ns > until_ns)
        return 0;
    struct windows *windows = engine->windows ? engine->windows : windows_create(engine);
    if (!windows)
        return 0;
    windows->until_ns = until_ns == UINT64_MAX ? UINT64_MAX - 1 : until_ns;
    windows->lookahead_ns = lookahead_ns;
    windows->max_events = max_events;
    windows->fewest_events = engine->fewest_events_in_windows;
    windows->alone_ns = engine->fewest_events_in_windows ? alone_ns : 0;
    enter(engine, windows, timer_first(&next->timers)->due_ns);
    pthread_mutex_lock(&windows->mutex);
    windows->round++;
    pthread_cond_broadcast(&windows->begins);
    pthread_mutex_unlock(&windows->mutex);
    run_side(windows, &windows->sides[0]);
    barrier_wait(windows);
    leave(engine, windows);
    const struct windows_end *end = &windows->sides[0].end;
    if (end->slow)
        engine->windows_put_off += engine->windows_put_off < MOST_PUT_OFF;
    else if (end->looked)
        engine->windows_put_off = 0;
    if (atomic_exchange_explicit(&engine->unexpected_upcall, false, memory_order_relaxed))
        return -EXDEV;
    bool ends_with_silence = end->begin_ns > windows->until_ns && end->begin_ns <= wanted_ns;
    return !end->kept_limit ? -ELOOP : ends_with_silence || end->paused ? 2 : 1;
}
