/* The engine's lock (lock.c). */
#ifndef GRADBED_LOCK_H
#define GRADBED_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Control calls wait for one batch of the data plane at most. Many of them in a row share one turn, without waking
 * the data plane in between, until it has waited for LOCK_TIMEOUT_NS. */
struct engine_lock {
    pthread_mutex_t mutex;
    uint32_t control_turn, batch_turn;      /* futexes: they change whenever a thread is to look again */
    bool held, batch_waits;
    uint32_t controls_waiting;
    uint64_t batch_waits_since_ns;
};

void engine_lock_open(struct engine_lock *);
void engine_lock_close(struct engine_lock *);
void engine_lock_control(struct engine_lock *);
void engine_lock_batch(struct engine_lock *);       /* the data plane's thread */
void engine_unlock(struct engine_lock *);

#pragma GCC visibility pop
#endif
