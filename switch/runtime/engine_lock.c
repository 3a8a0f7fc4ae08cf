/* Who may touch the engine: the data plane, batch by batch, and control calls.
 *
 * A plain mutex would let the data plane take it again before those who wait. A strictly fair lock would hand it
 * over, with a context switch each way, for every one of thousands of table entries.
 */
#include "engine_internal.h"

enum { LOCK_PATIENCE_NS = 50000 };

void engine_lock_open(struct engine_lock *lock) {
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->control_turn, NULL);
    pthread_cond_init(&lock->batch_turn, NULL);
}

void engine_lock_close(struct engine_lock *lock) {
    pthread_cond_destroy(&lock->batch_turn);
    pthread_cond_destroy(&lock->control_turn);
    pthread_mutex_destroy(&lock->mutex);
}

static bool batch_is_next(const struct engine_lock *lock) {
    if (!lock->batch_waits)
        return false;
    return lock->controls_waiting == 0 || real_clock() - lock->batch_waits_since_ns > LOCK_PATIENCE_NS;
}

void engine_lock_control(struct engine_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    lock->controls_waiting++;
    while (lock->held || batch_is_next(lock)) {
        if (!lock->held)
            /* It has lost patience since it was last told to wait. */
            pthread_cond_signal(&lock->batch_turn);
        pthread_cond_wait(&lock->control_turn, &lock->mutex);
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
            pthread_cond_wait(&lock->batch_turn, &lock->mutex);
        lock->batch_waits = false;
    }
    lock->held = true;
    pthread_mutex_unlock(&lock->mutex);
}

void engine_unlock(struct engine_lock *lock) {
    pthread_mutex_lock(&lock->mutex);
    lock->held = false;
    if (batch_is_next(lock))
        pthread_cond_signal(&lock->batch_turn);
    else if (lock->controls_waiting > 0)
        pthread_cond_signal(&lock->control_turn);
    pthread_mutex_unlock(&lock->mutex);
}
