/* Packet buffers and PHVs: taken from the system as needed, kept for the next packet.
 *
 * A frame lies at the end of its buffer, so that all the spare room is headroom, where deparsers put what they add.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

enum { SMALL_BYTES = 4096, LARGE_BYTES = 32768, ALIGNMENT = 64 };

/* A storm (packets that multiply in a loop) must not take the machine's memory. */
static const uint64_t LIMIT_BYTES = UINT64_C(1) << 30;

static struct packet *packet_new(struct packet_pool *pool, uint32_t capacity) {
    if (pool->bytes + sizeof(struct packet) + capacity > LIMIT_BYTES)
        return NULL;
    struct packet *packet = calloc(1, sizeof *packet);
    if (!packet)
        return NULL;
    packet->buffer = aligned_alloc(ALIGNMENT, capacity);
    if (!packet->buffer) {
        free(packet);
        return NULL;
    }
    packet->capacity = capacity;
    pool->bytes += sizeof *packet + capacity;
    return packet;
}

/* Empty, with room for `room` bytes (and little more) and all the headroom that is left. */
static void packet_place(struct packet *packet, uint32_t room) {
    packet->view.headroom = (packet->capacity - room) / ALIGNMENT * ALIGNMENT;
    packet->view.data = packet->buffer + packet->view.headroom;
    packet->view.length = 0;
}

struct packet *packet_take(struct packet_pool *pool, uint32_t headroom, uint32_t room) {
    if (room > LARGE_BYTES || headroom > LARGE_BYTES - room)
        return NULL;
    /* Rounding the headroom down may cost up to ALIGNMENT - 1 bytes. */
    bool small = headroom + room <= SMALL_BYTES - ALIGNMENT;
    struct packet **free_list = small ? &pool->free_small : &pool->free_large;
    struct packet *packet = *free_list;
    if (packet)
        *free_list = packet->next;
    else if (!(packet = packet_new(pool, small ? SMALL_BYTES : LARGE_BYTES)))
        return NULL;
    packet_place(packet, room);
    packet->view.phv = NULL;
    packet->view.payload_offset = 0;
    packet->view.keep_metadata = 0;
    packet->next = NULL;
    packet->direction = NULL;
    packet->truncate_bytes = UINT32_MAX;
    packet->stage = STAGE_PARSE;
    packet->duplicate = false;
    pool->live++;
    return packet;
}

struct packet *packet_from_bytes(struct packet_pool *pool, const uint8_t *data, uint32_t length) {
    struct packet *packet = packet_take(pool, 0, length);
    if (packet) {
        memcpy(packet->view.data, data, length);
        packet->view.length = length;
    }
    return packet;
}

struct packet *packet_copy_frame(struct packet_pool *pool, const struct packet *from) {
    struct packet *copy = packet_from_bytes(pool, from->view.data, from->view.length);
    if (copy) {
        copy->device = from->device;
        copy->port = from->port;
        copy->due_ns = from->due_ns;
    }
    return copy;
}

struct packet *packet_copy_parsed(struct packet_pool *pool, const struct packet *from, uint32_t phv_words) {
    const struct gb_packet *view = &from->view;
    struct packet *copy = packet_take(pool, view->headroom, view->length);
    if (!copy)
        return NULL;
    copy->view.phv = phv_take(pool, phv_words);
    if (!copy->view.phv) {
        packet_free(pool, copy);
        return NULL;
    }
    /* Headers are in the PHV; the deparser writes them out again in front of the payload. */
    memcpy(copy->view.data + view->payload_offset, view->data + view->payload_offset,
           view->length - view->payload_offset);
    memcpy(copy->view.phv, view->phv, (size_t)phv_words * sizeof *view->phv);
    copy->view.length = view->length;
    copy->view.payload_offset = view->payload_offset;
    copy->view.std = view->std;
    copy->device = from->device;
    copy->truncate_bytes = from->truncate_bytes;
    return copy;
}

bool packet_ensure_headroom(struct packet_pool *pool, struct packet *packet, uint32_t headroom) {
    struct gb_packet *view = &packet->view;
    if (view->headroom >= headroom)
        return true;
    uint32_t length = view->length;
    const uint8_t *old_data = view->data;
    if (packet->capacity >= length && (packet->capacity - length) / ALIGNMENT * ALIGNMENT >= headroom) {
        packet_place(packet, length);
        memmove(view->data, old_data, length);
        view->length = length;
        return true;
    }
    struct packet *larger = packet_take(pool, headroom, length);
    if (!larger)
        return false;
    memcpy(larger->view.data, old_data, length);
    uint8_t *old_buffer = packet->buffer;
    uint32_t old_capacity = packet->capacity;
    packet->buffer = larger->buffer;
    packet->capacity = larger->capacity;
    view->data = larger->view.data;
    view->headroom = larger->view.headroom;
    larger->buffer = old_buffer;
    larger->capacity = old_capacity;
    packet_free(pool, larger);
    return true;
}

uint64_t *phv_take(struct packet_pool *pool, uint32_t words) {
    struct phv *phv = pool->free_phv;
    while (phv && phv->words < words) {
        /* Left from a time when no program needed more. */
        pool->free_phv = phv->next;
        pool->bytes -= sizeof *phv + phv->words * sizeof *phv->cells;
        free(phv);
        phv = pool->free_phv;
    }
    if (phv) {
        pool->free_phv = phv->next;
        return phv->cells;
    }
    if (words < pool->phv_words)
        words = pool->phv_words;
    phv = calloc(1, sizeof *phv + words * sizeof *phv->cells);
    if (!phv)
        return NULL;
    phv->words = words;
    pool->bytes += sizeof *phv + words * sizeof *phv->cells;
    return phv->cells;
}

void phv_give(struct packet_pool *pool, uint64_t *cells) {
    if (!cells)
        return;
    struct phv *phv = (struct phv *)((char *)cells - offsetof(struct phv, cells));
    phv->next = pool->free_phv;
    pool->free_phv = phv;
}

void packet_free(struct packet_pool *pool, struct packet *packet) {
    phv_give(pool, packet->view.phv);
    struct packet **free_list = packet->capacity == SMALL_BYTES ? &pool->free_small : &pool->free_large;
    packet->next = *free_list;
    *free_list = packet;
    pool->live--;
}

void list_free(struct packet_pool *pool, struct packet_list *list) {
    struct packet *packet;
    while ((packet = list_pop(list)))
        packet_free(pool, packet);
}

static void free_packets(struct packet *packet) {
    while (packet) {
        struct packet *next = packet->next;
        free(packet->buffer);
        free(packet);
        packet = next;
    }
}

void packet_pool_free(struct packet_pool *pool) {
    free_packets(pool->free_small);
    free_packets(pool->free_large);
    while (pool->free_phv) {
        struct phv *next = pool->free_phv->next;
        free(pool->free_phv);
        pool->free_phv = next;
    }
}
