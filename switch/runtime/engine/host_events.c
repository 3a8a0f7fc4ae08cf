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

void host_event_queue_open(struct host_event_queue *queue) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&queue->mutex, NULL);
}

void host_event_queue_free(struct host_event_queue *queue) {
    while (queue->first) {
        struct host_event_node *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    pthread_cond_destroy(&queue->arrived);
    pthread_mutex_destroy(&queue->mutex);
}

void host_event_send(struct device *device, enum gb_host_event_kind kind, uint32_t list_id, const void *data,
                 uint64_t length) {
    if (!(device->listens & 1u << kind))
        return;
    struct host_event_queue *queue = &device->engine->host_events;
    struct host_event_node *node = malloc(sizeof *node + length);
    pthread_mutex_lock(&queue->mutex);
    if (!node || queue->count >= QUEUE_LIMIT || queue->closed) {
        device->statistics.host_event_drops++;
        free(node);
    } else {
        node->next = NULL;
        node->host_event.device_id = device->device_id;
        node->host_event.kind = kind;
        node->host_event.list_id = list_id;
        node->host_event.length = length;
        memcpy(node->host_event.data, data, length);
        if (queue->last)
            queue->last->next = node;
        else
            queue->first = node;
        queue->last = node;
        queue->count++;
        pthread_cond_signal(&queue->arrived);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (device->lp->side)
        atomic_store_explicit(&device->engine->unexpected_host_event, true, memory_order_relaxed);
    else
        device->engine->host_event_waits = true;
}

void host_event_digest(struct gb_switch *state, uint32_t list_id, const uint64_t *words, uint32_t word_count) {
    host_event_send(state->engine, GB_HOST_EVENT_DIGEST, list_id, words, word_count * sizeof *words);
}

void host_event_log(struct gb_switch *state, const char *line) {
    host_event_send(state->engine, GB_HOST_EVENT_LOG, 0, line, strlen(line));
}

struct gb_host_event *gb_engine_host_event_wait(struct gb_engine *engine, uint64_t timeout_ns) {
    struct host_event_queue *queue = &engine->host_events;
    uint64_t until_ns = real_clock() + timeout_ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->closed &&
           pthread_cond_timedwait(&queue->arrived, &queue->mutex, &until) != ETIMEDOUT)
        ;
    struct host_event_node *node = queue->first;
    if (node) {
        queue->first = node->next;
        if (!queue->first)
            queue->last = NULL;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->mutex);
    return node ? &node->host_event : NULL;
}

void gb_host_event_free(struct gb_host_event *host_event) {
    if (host_event)
        free((char *)host_event - offsetof(struct host_event_node, host_event));
}

void gb_engine_host_event_close(struct gb_engine *engine) {
    pthread_mutex_lock(&engine->host_events.mutex);
    engine->host_events.closed = true;
    pthread_cond_broadcast(&engine->host_events.arrived);
    pthread_mutex_unlock(&engine->host_events.mutex);
}
