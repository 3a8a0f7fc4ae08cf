/* The engine's life and its event loop. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/ports/classes.h"
#include "engine/ports/pfc.h"
#include "engine/ports/socket.h"
#include "engine/transport/nic.h"
#include "engine/transport/collectives/collective.h"
#include "trace.h"

enum {
    BATCH_EVENTS = 64,              /* worked on while the lock is held */
    FLUSH_BATCHES = 8,              /* frames to send wait for others for so long, unless all work is done before */
    READY_SOCKETS = 64,
    NO_WAIT_NS = 2000,              /* going to sleep and waking up takes longer than that */
    QUIESCE_POLL_NS = 200000,
    EVENTS_BEFORE_LOOKAHEAD = 2048,
    FEWEST_EVENTS_IN_LOOKAHEAD = 24, /* waiting for each other costs as much as some events */
    TIMESTAMPS_PER_CLOCK_READ = 1024,
};

/* How a run of the manual clock stands; a negative errno value if it failed. */
enum { DONE, PAUSED, RUNNING };

uint64_t real_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t engine_clock(struct gb_engine *engine) {
    return engine->manual_clock ? engine->manual_ns : real_clock();
}

struct device *engine_device(struct gb_engine *engine, uint64_t device_id) {
    uint32_t low = 0, high = engine->device_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (engine->devices[middle]->device_id == device_id)
            return engine->devices[middle];
        if (engine->devices[middle]->device_id < device_id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* When the next timer is due; UINT64_MAX if none is armed. */
static uint64_t next_ns(struct gb_engine *engine) {
    const struct logical_process *next = lps_next(engine);
    return next ? timer_first(&next->timers)->due_ns : UINT64_MAX;
}

void engine_catch_up(struct gb_engine *engine) {
    uint64_t clock_ns = engine_clock(engine);
    /* While there are earlier events to work on, time has not come that far. */
    if (!engine->ready.first && next_ns(engine) > clock_ns)
        lps_set_now(engine, clock_ns);
}

void engine_wake(struct gb_engine *engine) {
    if (engine->sleeping) {
        uint64_t one = 1;
        ssize_t written = write(engine->wake_fd, &one, sizeof one);
        (void)written;              /* fails only when it is signalled already */
    }
}

/* ---- Events ---- */

static void work_on_packet(struct gb_engine *engine, struct packet *packet) {
    struct logical_process *lp = packet->device->lp;
    lp->now_ns = engine->now_ns;
    lp->clock_ns = engine->clock_ns;
    lp_work_on(lp, packet);
}

/* The LP's next timer. */
static void fire_next(struct gb_engine *engine, struct logical_process *lp) {
    struct timer *timer = timer_pop(&lp->timers);
    engine->now_ns = lp->now_ns = timer->due_ns;
    lp->clock_ns = engine->clock_ns;
    lp_count_lateness(lp, engine->clock_ns - timer->due_ns);
    timer->kind->fire(lp, timer->owner);
}

/* Work on events up to clock_ns; how many. Fewer than max_events means that none is left. */
static uint64_t work(struct gb_engine *engine, uint64_t clock_ns, uint64_t max_events) {
    uint64_t events = 0;
    engine->clock_ns = clock_ns;
    for (; events < max_events; events++) {
        struct packet *packet = list_pop(&engine->ready);
        if (packet) {
            work_on_packet(engine, packet);
            continue;
        }
        struct logical_process *next = lps_next(engine);
        if (!next || timer_first(&next->timers)->due_ns > clock_ns)
            break;
        fire_next(engine, next);
    }
    return events;
}

void port_io_hold(struct gb_engine *engine, struct port_io *io) {
    if (!io->unflushed) {
        io->unflushed = true;
        engine->unflushed[engine->unflushed_count++] = io;
    }
}

void engine_flush(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->unflushed_count; i++) {
        engine->unflushed[i]->unflushed = false;
        engine->unflushed[i]->kind->flush(engine, engine->unflushed[i]);
    }
    engine->unflushed_count = 0;
    captures_flush(engine);
}

/* ---- The thread ---- */

/* Ask timer_fd for a wake-up at the next timer; true if that is so near that sleeping does not pay. */
static bool arm_wake_up(struct gb_engine *engine) {
    uint64_t due_ns = next_ns(engine);
    if (due_ns == UINT64_MAX)
        return false;
    if (due_ns <= engine_clock(engine) + NO_WAIT_NS)
        return true;
    if (due_ns != engine->armed_ns) {
        struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due_ns / 1000000000),
                                             .tv_nsec = (long)(due_ns % 1000000000)}};
        timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
        engine->armed_ns = due_ns;
    }
    return false;
}

static bool work_and_flush(struct gb_engine *engine) {
    engine->sleeping = false;
    engine_catch_up(engine);
    bool more = work(engine, engine_clock(engine), BATCH_EVENTS) == BATCH_EVENTS;
    more |= collectives_act(engine, UINT64_MAX);
    if (!more || ++engine->batches_since_flush >= FLUSH_BATCHES) {
        engine->batches_since_flush = 0;
        engine_flush(engine);
    }
    return more;
}

static void serve(struct gb_engine *engine, struct port_io *io, uint32_t events) {
    engine_lock_batch(&engine->lock);
    io->kind->receive(engine, io, events);
    work_and_flush(engine);
    engine_unlock(&engine->lock);
}

static void *data_plane(void *argument) {
    struct gb_engine *engine = argument;
    struct epoll_event ready[READY_SOCKETS];
    prctl(PR_SET_NAME, "data plane");
    gb_recorder_use(engine->recorder);
    for (;;) {
        engine_lock_batch(&engine->lock);
        if (engine->stopping) {
            engine_unlock(&engine->lock);
            return NULL;
        }
        bool more = work_and_flush(engine) || arm_wake_up(engine);
        engine->sleeping = !more;
        engine_unlock(&engine->lock);
        int count = epoll_wait(engine->epoll_fd, ready, READY_SOCKETS, more ? 0 : -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == &engine->wake_fd) {
                uint64_t signals;
                ssize_t got = read(engine->wake_fd, &signals, sizeof signals);
                (void)got;          /* what matters is that it is not signalled any more */
            } else if (ready[i].data.ptr == &engine->netlink_fd) {
                engine_lock_batch(&engine->lock);
                carriers_read(engine);
                engine_unlock(&engine->lock);
            } else if (ready[i].data.ptr != &engine->timer_fd) {
                serve(engine, ready[i].data.ptr, ready[i].events);
            }
        }
    }
}

int gb_engine_start(struct gb_engine *engine) {
    if (engine->manual_clock)
        return -EINVAL;
    if (engine->running)
        return 0;
    engine->stopping = false;
    /* Signals are for Python's main thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int outcome = pthread_create(&engine->thread, NULL, data_plane, engine);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    engine->running = outcome == 0;
    return -outcome;
}

int gb_engine_record(struct gb_engine *engine, struct gb_recorder *recorder) {
    if (engine->running)
        return -EBUSY;
    engine->recorder = recorder;
    return 0;
}

void gb_engine_stop(struct gb_engine *engine) {
    if (!engine->running)
        return;
    engine_lock_control(&engine->lock);
    engine->stopping = true;
    engine_wake(engine);
    engine_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);
    engine->running = false;
}

void gb_engine_lock(struct gb_engine *engine) {
    engine_lock_control(&engine->lock);
}

void gb_engine_unlock(struct gb_engine *engine) {
    engine_unlock(&engine->lock);
}

/* ---- Waiting ---- */

static bool quiet(struct gb_engine *engine) {
    engine_lock_control(&engine->lock);
    struct pollfd sockets = {.fd = engine->epoll_fd, .events = POLLIN};
    bool is_quiet =
        lps_live(engine) == lps_arrived(engine) + engine->idle_packets && poll(&sockets, 1, 0) == 0;
    engine_unlock(&engine->lock);
    return is_quiet;
}

int gb_engine_quiesce(struct gb_engine *engine, uint64_t timeout_ns) {
    struct timespec pause = {.tv_nsec = QUIESCE_POLL_NS};
    uint64_t end_ns = real_clock() + timeout_ns;
    while (!quiet(engine)) {
        if (real_clock() >= end_ns)
            return 0;
        nanosleep(&pause, NULL);
    }
    return 1;
}

/* ---- The manual clock ---- */

static bool host_waits(const struct gb_engine *engine) {
    return engine->host_event_waits || lps_due_order(engine) != UINT64_MAX;
}

/* Wall-clock time of events. */
struct pace { uint64_t since_ns, fired; };

static uint64_t timers_fired(const struct gb_engine *engine) {
    uint64_t fired = 0;
    for (uint32_t i = 0; i < engine->lp_count; i++)
        fired += engine->lps[i].statistics.timers_fired;
    return fired;
}

static struct pace pace_begin(const struct gb_engine *engine) {
    return (struct pace){real_clock(), timers_fired(engine)};
}

/* Wall-clock time of one event since then; 0 if there was none. */
static double pace_ns(const struct gb_engine *engine, const struct pace *pace) {
    uint64_t fired = timers_fired(engine) - pace->fired;
    return fired ? (double)(real_clock() - pace->since_ns) / (double)fired : 0;
}

/* One run of the manual clock. `events` counts those since it began; with for_hosts, those of the current time. */
struct run {
    uint64_t until_ns, max_events, events;
    bool for_hosts;                 /* stop when a host or controller has to act */
    uint64_t pause_ns, timestamps;  /* the wall clock's time to pause at, looked up every TIMESTAMPS_PER_CLOCK_READ */
    bool may_look_ahead;
    uint64_t events_before_lookahead;
    struct pace pace;               /* outside lookahead windows */
};

static struct run run_begin(const struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, bool for_hosts) {
    struct run run = {.until_ns = until_ns, .max_events = max_events, .for_hosts = for_hosts, .pause_ns = UINT64_MAX};
    if (!for_hosts)
        return run;
    run.pause_ns = real_clock() + GB_MOST_RUN_NS;
    run.may_look_ahead = engine->lp_count > 1;
    run.events_before_lookahead = engine->events_before_lookahead << engine->lookahead_put_off;
    if (run.may_look_ahead)
        run.pace = pace_begin(engine);
    return run;
}

/* Work on events in lookahead windows, if they pay; RUNNING if this thread goes on. */
static int run_lookahead(struct gb_engine *engine, struct run *run) {
    /* Deadlocks are looked for between windows. */
    bool watch = engine->has_pfc && engine->watch_ns < run->until_ns;
    uint64_t until_ns = watch ? engine->watch_ns : run->until_ns;
    int outcome = lookahead_run(engine, until_ns, run->max_events, pace_ns(engine, &run->pace));
    if (outcome < 0)
        return outcome;
    bool watched = watch && engine->now_ns >= engine->watch_ns;
    run->events_before_lookahead =
        watched || outcome == 2 ? 0 : engine->events_before_lookahead << engine->lookahead_put_off;
    run->pace = pace_begin(engine);
    return outcome && !host_waits(engine) && real_clock() > run->pause_ns ? PAUSED : RUNNING;
}

/* Before each event of a run for hosts. */
static int run_check(struct gb_engine *engine, struct run *run) {
    if (engine->has_pfc && engine->now_ns >= engine->watch_ns && pfc_watch(engine))
        return -EDEADLK;
    if (run->may_look_ahead && run->events_before_lookahead-- == 0 && !host_waits(engine))
        return run_lookahead(engine, run);
    return RUNNING;
}

/* Nothing more is due up to until_ns. */
static int run_end(struct gb_engine *engine, const struct run *run, const struct logical_process *next) {
    if (run->for_hosts && !next && engine->has_pfc && pfc_deadlock(engine, NULL, 0))
        return -EDEADLK;
    if (run->until_ns != UINT64_MAX)
        engine->now_ns = run->until_ns;
    return DONE;
}

/* Time goes on in a run for hosts; whether to pause before. */
static bool run_to_next_time(struct run *run) {
    run->events = 0;
    return ++run->timestamps % TIMESTAMPS_PER_CLOCK_READ == 0 && real_clock() > run->pause_ns;
}

/* Work on events up to until_ns as a data plane does that slept until then. With for_hosts, work on each as it is due,
 * until a host or controller has to act and everything at that time is done; PAUSED before that, between two times, once it
 * took long on the wall clock. -ELOOP after max_events; with for_hosts, of one time. */
static int run_events(struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, bool for_hosts) {
    struct run run = run_begin(engine, until_ns, max_events, for_hosts);
    for (;; run.events++) {
        if (run.events == max_events)
            return -ELOOP;
        int outcome = for_hosts ? run_check(engine, &run) : RUNNING;
        if (outcome != RUNNING)
            return outcome;
        engine->clock_ns = for_hosts ? engine->now_ns : until_ns;
        struct packet *packet = list_pop(&engine->ready);
        if (packet) {
            work_on_packet(engine, packet);
            continue;
        }
        struct logical_process *next = lps_next(engine);
        uint64_t next_ns = next ? timer_first(&next->timers)->due_ns : UINT64_MAX;
        bool time_is_done = next_ns > engine->now_ns;
        if (time_is_done && (engine->host_event_waits || lps_wait(engine))) {
            if (collectives_act(engine, for_hosts ? lps_due_order(engine) : UINT64_MAX))
                continue;
            if (for_hosts && host_waits(engine))
                return DONE;
        }
        if (!next || next_ns > until_ns)
            return run_end(engine, &run, next);
        if (for_hosts) {
            if (time_is_done && run_to_next_time(&run))
                return PAUSED;
            engine->clock_ns = next_ns;
        }
        fire_next(engine, next);
    }
}

static int advance(struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, bool for_hosts) {
    int outcome = run_events(engine, until_ns, max_events, for_hosts);
    engine->manual_ns = engine->now_ns;
    lps_set_now(engine, engine->now_ns);
    engine_flush(engine);
    return outcome;
}

int gb_engine_advance(struct gb_engine *engine, uint64_t nanoseconds, uint64_t max_events) {
    if (!engine->manual_clock)
        return -EINVAL;
    engine_lock_control(&engine->lock);
    int outcome = advance(engine, engine->manual_ns + nanoseconds, max_events, false);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_run_until(struct gb_engine *engine, uint64_t until_ns, uint64_t max_events, struct gb_stop *stop,
                        uint32_t *due, uint32_t capacity) {
    if (!engine->manual_clock || until_ns < engine->manual_ns)
        return -EINVAL;
    engine_lock_control(&engine->lock);
    engine->host_event_waits = false;
    int outcome = advance(engine, until_ns, max_events, true);
    stop->paused = outcome == PAUSED;
    stop->time_ns = engine->now_ns;
    stop->host_events = engine->host_event_waits;
    stop->idle = !engine->ready.first && !lps_next(engine);
    stop->due_count = lps_take_due(engine, collectives_order(engine), due, capacity);
    engine_unlock(&engine->lock);
    return outcome == PAUSED ? 0 : outcome;
}

void gb_engine_set_lookahead_windows(struct gb_engine *engine, uint64_t after_events, uint64_t fewest_events) {
    engine_lock_control(&engine->lock);
    engine->events_before_lookahead = after_events;
    engine->fewest_events_in_lookahead = fewest_events;
    engine_unlock(&engine->lock);
}

uint64_t gb_engine_silence(struct gb_engine *engine) {
    engine_lock_control(&engine->lock);
    uint64_t silence_ns = consumers_silence_ns(engine);
    engine_unlock(&engine->lock);
    return silence_ns;
}

void gb_engine_expect_no_host_events(struct gb_engine *engine) {
    engine_lock_control(&engine->lock);
    engine->expects_no_host_events = true;
    engine_unlock(&engine->lock);
}

uint64_t gb_engine_now(struct gb_engine *engine) {
    return engine_clock(engine);
}

/* ---- Creation and destruction ---- */

static bool watch(struct gb_engine *engine, int *fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = fd};
    return *fd >= 0 && epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, *fd, &event) == 0;
}

struct gb_engine *gb_engine_create(int manual_clock, uint32_t lps) {
    if (lps == 0 || lps > GB_MAX_LPS || (lps > 1 && !manual_clock))
        return NULL;
    struct gb_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine_lock_open(&engine->lock);
    host_event_queue_open(&engine->host_events);
    engine->receive_small = receive_batch_create(false);
    engine->receive_large = receive_batch_create(true);
    bool partitioned = lps_create(engine, lps);
    engine->manual_clock = manual_clock;
    engine->events_before_lookahead = EVENTS_BEFORE_LOOKAHEAD;
    engine->fewest_events_in_lookahead = FEWEST_EVENTS_IN_LOOKAHEAD;
    engine->netlink_fd = -1;
    engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    engine->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    /* Edge-triggered: setting the timer again is all it takes, it is never read. */
    if (!partitioned || !engine->receive_small || !engine->receive_large || !watch(engine, &engine->wake_fd, EPOLLIN) ||
        !watch(engine, &engine->timer_fd, EPOLLIN | EPOLLET)) {
        gb_engine_free(engine);
        return NULL;
    }
    lps_set_now(engine, engine_clock(engine));
    return engine;
}

static void close_if_open(int fd) {
    if (fd >= 0)
        close(fd);
}

void gb_engine_free(struct gb_engine *engine) {
    gb_engine_stop(engine);
    lookahead_free(engine);
    consumers_free(engine);
    for (uint32_t i = 0; i < engine->io_count; i++)
        engine->ios[i]->kind->close(engine, engine->ios[i]);
    generators_free(engine);
    classes_free(engine);
    struct packet_pool *pool = &engine->lps[0].pool;
    receive_batch_free(pool, engine->receive_small);
    receive_batch_free(pool, engine->receive_large);
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        for (uint32_t priority = 0; priority < GB_PRIORITIES; priority++)
            list_free(pool, &engine->directions[i]->queue.lists[priority]);
        list_free(pool, &engine->directions[i]->flight);
        taps_free(engine->directions[i]->departures);
        taps_free(engine->directions[i]->arrivals);
        pfc_free(engine->directions[i]);
    }
    list_free(pool, &engine->ready);
    list_free(pool, &engine->drained);
    for (uint32_t i = 0; i < engine->device_count; i++) {
        replica_map_clear(&engine->devices[i]->groups);
        replica_map_clear(&engine->devices[i]->sessions);
    }
    models_free(engine);
    lps_free(engine);
    host_event_queue_free(&engine->host_events);
    captures_free(engine);
    free(engine->ios);
    free(engine->unflushed);
    free(engine->directions);
    free(engine->devices);
    close_if_open(engine->netlink_fd);
    close_if_open(engine->timer_fd);
    close_if_open(engine->wake_fd);
    close_if_open(engine->epoll_fd);
    engine_lock_close(&engine->lock);
    free(engine);
}
