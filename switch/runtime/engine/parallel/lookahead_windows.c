/* LPs side by side, each on a thread of its own: conservative simulation in windows of time (Nicol, "The cost of
 * conservative synchronization in parallel discrete event simulations", J. ACM 40(2), 1993).
 *
 * What an LP does at time t reaches another one at t + the delay of a link between them at the earliest. So all
 * LPs can work up to the end of a window, which begins with the first event of all and is as long as the least of
 * these delays; then they wait for each other, and hand over what crosses.
 *
 * The run is the same, to the last byte, as that of one thread. There, events of the same time are worked on in the order
 * in which they were caused, by numbers that count all that is caused. In a window each LP counts by itself, from
 * the same number on. That orders its own events rightly, as all that others caused was known before. Afterwards the
 * LPs' events are merged into the order of one thread, and what they caused gets the numbers that it has there.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/internal.h"
#include "engine/parallel/lookahead_windows.h"
#include "engine/transport/nic.h"
#include "engine/transport/collectives/collective.h"
#include "trace.h"

enum {
    LOOK_WINDOWS = 64,              /* after so many, and so on: are they enough? */
    SPINS = 4000,                   /* before another thread may have the processor */
    MOST_PUT_OFF = 10,              /* times the events before windows are doubled, as windows were slower */
    FEWEST_WINDOWS = 8,             /* during as many no host may have to act, or they are not begun */
};

/* ---- Waiting for each other ---- */

#if defined(__x86_64__) || defined(__i386__)
#define RELAX __builtin_ia32_pause()
#elif defined(__aarch64__)
#define RELAX __asm__ volatile("yield")
#else
#define RELAX (void)0
#endif

static void barrier_wait(struct lookahead *lookahead) {
    unsigned turn = atomic_load_explicit(&lookahead->turn, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&lookahead->arrived, 1, memory_order_acq_rel) + 1 == lookahead->count) {
        atomic_store_explicit(&lookahead->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&lookahead->turn, turn + 1, memory_order_release);
        return;
    }
    for (unsigned spins = 0; atomic_load_explicit(&lookahead->turn, memory_order_acquire) == turn; spins++) {
        if (spins < SPINS)
            RELAX;
        else
            sched_yield();
    }
}

/* ---- A window ---- */

static struct event *log_event(struct side *side, uint64_t due_ns, uint64_t sequence) {
    struct events *events = &side->events[side->parity];
    if (events->count == events->capacity && !lookahead_grow((void **)&events->events, &events->capacity, sizeof *events->events))
        abort();
    events->events[events->count] = (struct event){due_ns, sequence, 0, false};
    return &events->events[events->count++];
}

/* Everything of this time has happened: one of the NICs sends what became ready because of it. */
static void let_nic_act(struct logical_process *lp, struct side *side) {
    log_event(side, lp->now_ns, collectives_own_order(lp))->is_last = true;
    lp->clock_ns = lp->now_ns;
    collectives_act_next(lp);
}

/* Whether the limit of events at one time was kept. */
static bool work(struct logical_process *lp, struct side *side, uint64_t end_ns, uint64_t max_events) {
    struct timer_queue *timers = &lp->timers;
    struct packet *packet;
    for (uint64_t at_once = 0;;) {
        const struct timer_place *next = timer_next(timers);
        if (lp->acting_first && next->due_ns > lp->now_ns) {
            let_nic_act(lp, side);
        } else if (next->due_ns >= end_ns) {
            return true;
        } else {
            log_event(side, next->due_ns, next->sequence);
            struct timer *timer = timer_pop(timers);
            if (timer->due_ns > lp->now_ns)
                at_once = 0;
            lp->now_ns = lp->clock_ns = timer->due_ns;
            lp_count_lateness(lp, 0);
            timer->kind->fire(lp, timer->owner);
        }
        while ((packet = list_pop(&side->ready))) {
            if (++at_once >= max_events)
                return false;
            lp_work_on(lp, packet);
        }
        if (++at_once >= max_events)
            return false;
        struct events *events = &side->events[side->parity];
        events->events[events->count - 1].caused = side->causes.count;
    }
}

static void run_window(struct lookahead *lookahead, struct side *side, uint64_t end_ns, bool slow) {
    struct logical_process *lp = side->lp;
    side->slow[side->parity] = slow;
    for (uint32_t i = 0; i < lookahead->count; i++)
        side->boxes[side->parity][i].count = 0;
    side->events[side->parity].count = 0;
    side->crossing_ns[side->parity] = UINT64_MAX;
    side->kept_limit[side->parity] = work(lp, side, end_ns, lookahead->max_events);
    side->notifies[side->parity] = lp->due_first;
    side->next_ns[side->parity] = timer_next(&lp->timers)->due_ns;
    side->caused[side->parity] = side->causes.count;
}

/* ---- Afterwards ---- */

/* Who hands a packet over gets an empty one of its size, if there is one. */
static void give_back(struct side *from, struct side *to, const struct packet *packet) {
    struct packet *empty = packet_pool_give(&from->lp->pool, packet->size);
    if (empty)
        list_append(&from->empties[from->parity][to - from->lp->engine->lookahead->sides], empty);
}

/* What another processor wrote is a long way away: all of it is looked at at once, before it is needed. */
static void prefetch_crossings(const struct crossings *box) {
    for (uint32_t i = 0; i < box->count; i++) {
        const struct crossing *crossing = &box->crossings[i];
        gb_prefetch_lines(crossing->packet, gb_lines_of(sizeof *crossing->packet));
        gb_prefetch_line(crossing->data);
        gb_prefetch_line(&crossing->direction->arrival);
    }
}

static void take_crossings(struct lookahead *lookahead, struct side *side) {
    struct logical_process *lp = side->lp;
    uint32_t own = (uint32_t)(side - lookahead->sides);
    for (uint32_t i = 0; i < lookahead->count; i++) {
        struct side *other = &lookahead->sides[i];
        const struct crossings *box = &other->boxes[side->parity][own];
        prefetch_crossings(box);
        for (uint32_t j = 0; j < box->count; j++) {
            const struct crossing *crossing = &box->crossings[j];
            lp->pool.live++;
            give_back(side, other, crossing->packet);
            timed_put_numbered(&lp->timers, &crossing->direction->flight, &crossing->direction->arrival,
                               crossing->packet, crossing->due_ns, side->numbers[i].of[crossing->number]);
        }
        lp->pool.live -= side->boxes[side->parity][i].count;
    }
}

static void take_empties(struct lookahead *lookahead, struct side *side) {
    uint32_t own = (uint32_t)(side - lookahead->sides), before = !side->parity;
    for (uint32_t i = 0; i < lookahead->count; i++) {
        struct packet *empty;
        while ((empty = list_pop(&lookahead->sides[i].empties[before][own])))
            packet_pool_take(&side->lp->pool, empty);
    }
}

/* When the next window begins; UINT64_MAX: nothing is left. */
static uint64_t next_begin(const struct lookahead *lookahead, uint32_t parity) {
    uint64_t begin_ns = UINT64_MAX;
    for (uint32_t i = 0; i < lookahead->count; i++) {
        const struct side *side = &lookahead->sides[i];
        uint64_t own_ns = side->next_ns[parity] < side->crossing_ns[parity] ? side->next_ns[parity]
                                                                            : side->crossing_ns[parity];
        if (own_ns < begin_ns)
            begin_ns = own_ns;
    }
    return begin_ns;
}

static uint64_t end_of_window(const struct lookahead *lookahead, uint64_t begin_ns) {
    uint64_t last_ns = lookahead->until_ns;
    return last_ns - begin_ns < lookahead->lookahead_ns ? last_ns + 1 : begin_ns + lookahead->lookahead_ns;
}

static bool kept_limits(const struct lookahead *lookahead, uint32_t parity) {
    bool kept = true;
    for (uint32_t i = 0; i < lookahead->count; i++)
        kept &= lookahead->sides[i].kept_limit[parity];
    return kept;
}

static bool an_agent_is_due(const struct lookahead *lookahead, uint32_t parity) {
    bool notifies = false;
    for (uint32_t i = 0; i < lookahead->count; i++)
        notifies |= lookahead->sides[i].notifies[parity];
    return notifies;
}

/* The same decisions on every thread, as all look at the same. The first looks at the clock: where others want the
 * processors one thread is sooner done, as several wait for whichever of them has none. */
static void run_side(struct lookahead *lookahead, struct side *side) {
    uint64_t base = lookahead->base, begin_ns = lookahead->begin_ns, events = 0, since_ns = real_clock();
    uint64_t pause_ns = since_ns + GB_MOST_RUN_NS;
    bool slow = false;
    for (uint32_t done = 1;; done++) {
        side->paused[side->parity] = side == lookahead->sides && done % LOOK_WINDOWS == 0 && real_clock() > pause_ns;
        side->causes.base = base;
        side->next_sequence = base;
        run_window(lookahead, side, end_of_window(lookahead, begin_ns), slow);
        barrier_wait(lookahead);
        lookahead_merge(lookahead, side, base);
        lookahead_renumber(side, base);
        take_empties(lookahead, side);
        take_crossings(lookahead, side);
        for (uint32_t i = 0; i < lookahead->count; i++) {
            base += lookahead->sides[i].caused[side->parity];
            events += lookahead->sides[i].events[side->parity].count;
        }
        begin_ns = next_begin(lookahead, side->parity);
        bool kept = kept_limits(lookahead, side->parity), was_slow = lookahead->sides[0].slow[side->parity];
        bool paused = lookahead->sides[0].paused[side->parity];
        bool stops = !kept || was_slow || paused || an_agent_is_due(lookahead, side->parity);
        if (done % LOOK_WINDOWS == 0) {
            stops |= events < LOOK_WINDOWS * lookahead->fewest_events;
            if (side == lookahead->sides && lookahead->alone_ns > 0) {
                uint64_t now_ns = real_clock();
                slow = (double)(now_ns - since_ns) > lookahead->alone_ns * (double)events;
                since_ns = now_ns;
            }
            events = 0;
        }
        side->parity = !side->parity;
        if (stops || begin_ns > lookahead->until_ns || begin_ns == UINT64_MAX) {
            side->end = (struct lookahead_end){base, begin_ns, kept, done > LOOK_WINDOWS, was_slow, paused};
            return;
        }
    }
}

/* ---- Threads ---- */

static void *side_thread(void *argument) {
    struct side *side = argument;
    struct lookahead *lookahead = side->lp->engine->lookahead;
    prctl(PR_SET_NAME, "logical-process");
    for (uint32_t round = 1;; round++) {
        pthread_mutex_lock(&lookahead->mutex);
        while (lookahead->round != round && !lookahead->stopping)
            pthread_cond_wait(&lookahead->begins, &lookahead->mutex);
        bool stopping = lookahead->stopping;
        pthread_mutex_unlock(&lookahead->mutex);
        if (stopping)
            return NULL;
        run_side(lookahead, side);
        barrier_wait(lookahead);
    }
}

static bool start_threads(struct gb_engine *engine, struct lookahead *lookahead) {
    /* Signals are for Python's main thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (lookahead->started < engine->lp_count - 1 &&
           pthread_create(&lookahead->threads[lookahead->started], NULL, side_thread,
                          &lookahead->sides[lookahead->started + 1]) == 0)
        lookahead->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return lookahead->started == engine->lp_count - 1;
}

static void stop_threads(struct lookahead *lookahead) {
    pthread_mutex_lock(&lookahead->mutex);
    lookahead->stopping = true;
    pthread_cond_broadcast(&lookahead->begins);
    pthread_mutex_unlock(&lookahead->mutex);
    for (uint32_t i = 0; i < lookahead->started; i++)
        pthread_join(lookahead->threads[i], NULL);
}

static struct lookahead *lookahead_create(struct gb_engine *engine) {
    struct lookahead *lookahead = aligned_alloc(_Alignof(struct lookahead), sizeof *lookahead);
    if (!lookahead)
        return NULL;
    memset(lookahead, 0, sizeof *lookahead);
    engine->lookahead = lookahead;
    lookahead->count = engine->lp_count;
    pthread_mutex_init(&lookahead->mutex, NULL);
    pthread_cond_init(&lookahead->begins, NULL);
    for (uint32_t i = 0; i < lookahead->count; i++)
        lookahead->sides[i].lp = &engine->lps[i];
    if (start_threads(engine, lookahead))
        return lookahead;
    lookahead_free(engine);
    return NULL;
}

static void side_free(struct side *side) {
    for (uint32_t parity = 0; parity < 2; parity++) {
        free(side->events[parity].events);
        for (uint32_t i = 0; i < GB_MAX_LPS; i++)
            free(side->boxes[parity][i].crossings);

    }
    for (uint32_t i = 0; i < GB_MAX_LPS; i++)
        free(side->numbers[i].of);
    free(side->causes.causes);
}

void lookahead_free(struct gb_engine *engine) {
    struct lookahead *lookahead = engine->lookahead;
    if (!lookahead)
        return;
    stop_threads(lookahead);
    for (uint32_t i = 0; i < lookahead->count; i++)
        side_free(&lookahead->sides[i]);
    pthread_cond_destroy(&lookahead->begins);
    pthread_mutex_destroy(&lookahead->mutex);
    free(lookahead);
    engine->lookahead = NULL;
}

/* ---- Whether, and how ---- */

/* The least delay of a link, which packets need from one LP to another; 0: a host may have to act at
 * any time, or sees the order in which LPs act. */
static uint64_t lookahead(const struct gb_engine *engine) {
    uint64_t least_ns = UINT64_MAX;
    if (engine->lp_count == 1 || engine->ready.first || engine->capture_count || gb_recorder_used())
        return 0;
    for (uint32_t i = 0; i < engine->device_count && !engine->expects_no_host_events; i++)
        if (engine->devices[i]->listens)
            return 0;
    for (uint32_t i = 0; i < engine->io_count; i++)
        if (memory_port_notifies(engine->ios[i]))
            return 0;
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        const struct gb_link_model *model = engine->directions[i]->parent->model;
        uint64_t own_ns = model->delay_ns - model->jitter_ns;
        if (engine->directions[i]->parent->reported && own_ns < least_ns)
            least_ns = own_ns;
    }
    return least_ns;
}

static void enter(struct gb_engine *engine, struct lookahead *lookahead, uint64_t begin_ns) {
    lookahead->base = engine->next_sequence;
    lookahead->begin_ns = begin_ns;
    for (uint32_t i = 0; i < lookahead->count; i++) {
        struct side *side = &lookahead->sides[i];
        side->parity = 0;
        side->lp->side = side;
        side->lp->ready = &side->ready;
        side->lp->timers.next_sequence = &side->next_sequence;
        side->lp->timers.causes = &side->causes;
    }
}

static void leave(struct gb_engine *engine, struct lookahead *lookahead) {
    for (uint32_t i = 0; i < lookahead->count; i++) {
        struct side *side = &lookahead->sides[i];
        side->lp->side = NULL;
        side->lp->ready = &engine->ready;
        side->lp->timers.next_sequence = &engine->next_sequence;
        side->lp->timers.causes = NULL;
        for (uint32_t parity = 0; parity < 2; parity++)
            for (uint32_t j = 0; j < lookahead->count; j++) {
                struct packet *empty;
                while ((empty = list_pop(&side->empties[parity][j])))
                    packet_pool_take(&lookahead->sides[j].lp->pool, empty);
            }
        if (side->lp->now_ns > engine->now_ns)
            engine->now_ns = side->lp->now_ns;
    }
    engine->next_sequence = lookahead->sides[0].end.sequence;
}

/* The last time at which agents are known to have nothing to do; until_ns, if that is earlier. 0: not for long. */
static uint64_t last_silent_ns(const struct gb_engine *engine, uint64_t lookahead_ns, uint64_t until_ns) {
    uint64_t silence_ns = engine->consumer_count ? consumers_silence_ns(engine) : UINT64_MAX;
    if (silence_ns < FEWEST_WINDOWS * lookahead_ns)
        return 0;
    return until_ns - engine->now_ns < silence_ns ? until_ns : engine->now_ns + silence_ns - 1;
}

int lookahead_run(struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, double alone_ns) {
    const struct logical_process *next = lps_next(engine);
    uint64_t lookahead_ns = lookahead(engine), wanted_ns = until_ns;
    if (!next || !lookahead_ns || !(until_ns = last_silent_ns(engine, lookahead_ns, until_ns)) ||
        timer_first(&next->timers)->due_ns > until_ns)
        return 0;
    struct lookahead *lookahead = engine->lookahead ? engine->lookahead : lookahead_create(engine);
    if (!lookahead)
        return 0;
    lookahead->until_ns = until_ns == UINT64_MAX ? UINT64_MAX - 1 : until_ns;
    lookahead->lookahead_ns = lookahead_ns;
    lookahead->max_events = max_events;
    lookahead->fewest_events = engine->fewest_events_in_lookahead;
    lookahead->alone_ns = engine->fewest_events_in_lookahead ? alone_ns : 0;
    enter(engine, lookahead, timer_first(&next->timers)->due_ns);
    pthread_mutex_lock(&lookahead->mutex);
    lookahead->round++;
    pthread_cond_broadcast(&lookahead->begins);
    pthread_mutex_unlock(&lookahead->mutex);
    run_side(lookahead, &lookahead->sides[0]);
    barrier_wait(lookahead);
    leave(engine, lookahead);
    const struct lookahead_end *end = &lookahead->sides[0].end;
    if (end->slow)
        engine->lookahead_put_off += engine->lookahead_put_off < MOST_PUT_OFF;
    else if (end->looked)
        engine->lookahead_put_off = 0;
    if (atomic_exchange_explicit(&engine->unexpected_host_event, false, memory_order_relaxed))
        return -EXDEV;
    bool ends_with_silence = end->begin_ns > lookahead->until_ns && end->begin_ns <= wanted_ns;
    return !end->kept_limit ? -ELOOP : ends_with_silence || end->paused ? 2 : 1;
}
