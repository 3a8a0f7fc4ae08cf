/* Messages for the controller: packet-ins, digests, log lines.
 *
 * The data plane appends and goes on; another thread waits. The queue has a mutex of its own, so that nobody who
 * waits for messages stands in the way of packets. When it is full, new messages are dropped and counted.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/internal.h"

enum { QUEUE_LIMIT = 8192 };

void upcall_queue_open(struct upcall_queue *queue) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&queue->mutex, NULL);
}

void upcall_queue_free(struct upcall_queue *queue) {
    while (queue->first) {
        struct upcall_node *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    pthread_cond_destroy(&queue->arrived);
    pthread_mutex_destroy(&queue->mutex);
}

void upcall_send(struct device *device, enum gb_upcall_kind kind, uint32_t list_id, const void *data,
                 uint64_t length) {
    if (!(device->listens & 1u << kind))
        return;
    struct upcall_queue *queue = &device->engine->upcalls;
    struct upcall_node *node = malloc(sizeof *node + length);
    pthread_mutex_lock(&queue->mutex);
    if (!node || queue->count >= QUEUE_LIMIT || queue->closed) {
        device->statistics.upcall_drops++;
        free(node);
    } else {
        node->next = NULL;
        node->upcall.device_id = device->device_id;
        node->upcall.kind = kind;
        node->upcall.list_id = list_id;
        node->upcall.length = length;
        memcpy(node->upcall.data, data, length);
        if (queue->last)
            queue->last->next = node;
        else
            queue->first = node;
        queue->last = node;
        queue->count++;
        pthread_cond_signal(&queue->arrived);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (device->part->side)
        atomic_store_explicit(&device->engine->unexpected_upcall, true, memory_order_relaxed);
    else
        device->engine->upcall_waits = true;
}

void upcall_digest(struct gb_switch *state, uint32_t list_id, const uint64_t *words, uint32_t word_count) {
    upcall_send(state->engine, GB_UPCALL_DIGEST, list_id, words, word_count * sizeof *words);
}

void upcall_log(struct gb_switch *state, const char *line) {
    upcall_send(state->engine, GB_UPCALL_LOG, 0, line, strlen(line));
}

struct gb_upcall *gb_engine_upcall_wait(struct gb_engine *engine, uint64_t timeout_ns) {
    struct upcall_queue *queue = &engine->upcalls;
    uint64_t until_ns = real_clock() + timeout_ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->closed &&
           pthread_cond_timedwait(&queue->arrived, &queue->mutex, &until) != ETIMEDOUT)
        ;
    struct upcall_node *node = queue->first;
    if (node) {
        queue->first = node->next;
        if (!queue->first)
            queue->last = NULL;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return node ? &node->upcall : NULL;
}

void gb_upcall_free(struct gb_upcall *upcall) {
    if (upcall)
        free((char *)upcall - offsetof(struct upcall_node, upcall));
}

void gb_engine_upcall_close(struct gb_engine *engine) {
    pthread_mutex_lock(&engine->upcalls.mutex);
    engine->upcalls.closed = true;
    pthread_cond_broadcast(&engine->upcalls.arrived);
    pthread_mutex_unlock(&engine->upcalls.mutex);
}
