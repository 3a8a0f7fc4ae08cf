/* Who may touch the engine: the data plane, batch by batch, and control calls.
 *
 * A plain mutex would let the data plane take it again before those who wait. A strictly fair lock would hand it
 * over, with a context switch each way, for every one of thousands of table entries.
 *
 * Turns are futexes (futex(2)), since the condition variables of glibc 2.27 to 2.40 can lose a signal when several
 * threads wait (glibc bug 25847), after which the engine would stand still for good.
 */
#define _GNU_SOURCE                 /* syscall */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/internal.h"

enum { LOCK_TIMEOUT_NS = 50000 };

/* Wait for a call of `call_next` that comes after this one, or for no reason. The mutex is held before and after. */
static void await(struct engine_lock *lock, uint32_t *turn) {
    uint32_t seen = *turn;
    pthread_mutex_unlock(&lock->mutex);
    /* Returns at once if the turn has changed meanwhile. */
    syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    pthread_mutex_lock(&lock->mutex);
}

/* Wake at least one of those who wait, if any does. The mutex is held. */
static void call_next(uint32_t *turn) {
    ++*turn;
    syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void engine_lock_open(struct engine_lock *lock) {
    pthread_mutex_init(&lock->mutex, NULL);
}

void engine_lock_close(struct engine_lock *lock) {
    pthread_mutex_destroy(&lock->mutex);
}

static bool batch_is_next(const struct engine_lock *lock) {
    if (!lock->batch_waits)
        return false;
    return lock->controls_waiting == 0 || real_clock() - lock->batch_waits_since_ns > LOCK_TIMEOUT_NS;
}

void engine_lock_control(struct engine_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    lock->controls_waiting++;
    while (lock->held || batch_is_next(lock)) {
        if (!lock->held)
            /* Its timeout has passed since it was last made to wait. */
            call_next(&lock->batch_turn);
        await(lock, &lock->control_turn);
    }
    lock->controls_waiting--;
    lock->held = true;
    pthread_mutex_unlock(&lock->mutex);
}

void engine_lock_batch(struct engine_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    if (lock->held || lock->controls_waiting > 0) {
        lock->batch_waits = true;
        lock->batch_waits_since_ns = real_clock();
        while (lock->held || !batch_is_next(lock))
            await(lock, &lock->batch_turn);
        lock->batch_waits = false;
    }
    lock->held = true;
    pthread_mutex_unlock(&lock->mutex);
}

void engine_unlock(struct engine_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    lock->held = false;
    if (batch_is_next(lock))
        call_next(&lock->batch_turn);
    else if (lock->controls_waiting > 0)
        call_next(&lock->control_turn);
    pthread_mutex_unlock(&lock->mutex);
}
