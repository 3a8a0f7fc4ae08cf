/* Packets and PHVs: taken from the system as needed, kept for the next packet.
 *
 * A packet and its buffer are one piece of memory, of one of a few sizes. A frame lies at the end of its buffer, so
 * that all the spare room is headroom, where deparsers put what they add.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

enum { ALIGNMENT = 64 };

/* Of buffers: for acknowledgements and the like, for an MTU of 1,500, for that and long headers, and for jumbo frames
 * with short and with long ones. */
static const uint32_t SIZES[PACKET_SIZES] = {448, 1984, 4096, 12288, 32768};

/* A storm (packets that multiply in a loop) must not take the machine's memory. */
static const uint64_t LIMIT_BYTES = UINT64_C(1) << 30;

/* Where the buffer begins; a multiple of ALIGNMENT. */
static const size_t BUFFER_OFFSET = (sizeof(struct packet) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

static uint8_t *buffer_of(struct packet *packet) {
    return (uint8_t *)packet + BUFFER_OFFSET;
}

static struct packet *packet_new(struct packet_pool *pool, uint8_t size) {
    size_t bytes = BUFFER_OFFSET + SIZES[size];
    if (*pool->bytes + bytes > LIMIT_BYTES)
        return NULL;
    struct packet *packet = aligned_alloc(ALIGNMENT, bytes);
    if (!packet)
        return NULL;
    memset(packet, 0, sizeof *packet);
    packet->size = size;
    *pool->bytes += bytes;
    return packet;
}

/* Empty, with room for `room` bytes (and little more) and all the headroom that is left. */
static void packet_place(struct packet *packet, uint32_t room) {
    packet->view.headroom = (SIZES[packet->size] - room) / ALIGNMENT * ALIGNMENT;
    packet->view.data = buffer_of(packet) + packet->view.headroom;
    packet->view.length = 0;
}

/* Whether a buffer of that size has the room, and the headroom, which is rounded down to a multiple of ALIGNMENT. */
static bool fits(uint8_t size, uint32_t headroom, uint32_t room) {
    return room <= SIZES[size] && (SIZES[size] - room) / ALIGNMENT * ALIGNMENT >= headroom;
}

struct packet *packet_take(struct packet_pool *pool, uint32_t headroom, uint32_t room) {
    uint8_t size = 0;
    while (!fits(size, headroom, room))
        if (++size == PACKET_SIZES)
            return NULL;
    struct packet *packet = pool->free_packets[size];
    if (packet)
        pool->free_packets[size] = packet->next;
    else if (!(packet = packet_new(pool, size)))
        return NULL;
    packet_place(packet, room);
    packet->view.phv = NULL;
    packet->view.payload_offset = 0;
    packet->view.keep_metadata = 0;
    packet->next = NULL;
    packet->direction = NULL;
    packet->truncate_bytes = UINT32_MAX;
    packet->stage = STAGE_PARSE;
    packet->class_number = 0;
    packet->duplicate = false;
    pool->live++;
    return packet;
}

struct packet *packet_from_bytes(struct packet_pool *pool, const uint8_t *data, uint32_t length, uint32_t headroom) {
    struct packet *packet = packet_take(pool, headroom, length);
    if (packet) {
        memcpy(packet->view.data, data, length);
        packet->view.length = length;
    }
    return packet;
}

struct packet *packet_copy_frame(struct packet_pool *pool, const struct packet *from, uint32_t headroom) {
    struct packet *copy = packet_from_bytes(pool, from->view.data, from->view.length, headroom);
    if (copy) {
        copy->device = from->device;
        copy->port = from->port;
        copy->due_ns = from->due_ns;
        copy->class_number = from->class_number;
    }
    return copy;
}

struct packet *packet_copy_parsed(struct packet_pool *pool, const struct packet *from,
                                  const struct gb_program *program) {
    const struct gb_packet *view = &from->view;
    struct packet *copy = packet_take(pool, program->max_header_bytes, view->length);
    if (!copy)
        return NULL;
    copy->view.phv = phv_take(pool, program->phv_words);
    if (!copy->view.phv) {
        packet_free(pool, copy);
        return NULL;
    }
    /* Headers are in the PHV; the deparser writes them out again in front of the payload. */
    memcpy(copy->view.data + view->payload_offset, view->data + view->payload_offset,
           view->length - view->payload_offset);
    memcpy(copy->view.phv, view->phv, (size_t)program->phv_words * sizeof *view->phv);
    copy->view.length = view->length;
    copy->view.payload_offset = view->payload_offset;
    copy->view.std = view->std;
    copy->device = from->device;
    copy->truncate_bytes = from->truncate_bytes;
    copy->class_number = from->class_number;
    return copy;
}

struct packet *packet_with_headroom(struct packet_pool *pool, struct packet *packet, uint32_t headroom) {
    struct gb_packet *view = &packet->view;
    uint32_t length = view->length;
    if (view->headroom >= headroom)
        return packet;
    if (fits(packet->size, headroom, length)) {
        const uint8_t *old_data = view->data;
        packet_place(packet, length);
        memmove(view->data, old_data, length);
        view->length = length;
        return packet;
    }
    struct packet *larger = packet_take(pool, headroom, length);
    if (!larger)
        return NULL;
    struct packet place = *larger;
    *larger = *packet;
    larger->size = place.size;
    larger->view.data = place.view.data;
    larger->view.headroom = place.view.headroom;
    memcpy(larger->view.data, view->data, length);
    view->phv = NULL;
    packet_free(pool, packet);
    return larger;
}

uint64_t *phv_take(struct packet_pool *pool, uint32_t words) {
    struct phv *phv = pool->free_phv;
    while (phv && phv->words < words) {
        /* Left from a time when no program needed more. */
        pool->free_phv = phv->next;
        *pool->bytes -= sizeof *phv + phv->words * sizeof *phv->cells;
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
    *pool->bytes += sizeof *phv + words * sizeof *phv->cells;
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
    packet_pool_take(pool, packet);
    pool->live--;
}

struct packet *packet_pool_give(struct packet_pool *pool, uint8_t size) {
    struct packet *packet = pool->free_packets[size];
    if (packet)
        pool->free_packets[size] = packet->next;
    return packet;
}

void packet_pool_take(struct packet_pool *pool, struct packet *packet) {
    packet->next = pool->free_packets[packet->size];
    pool->free_packets[packet->size] = packet;
}

void list_insert(struct packet_list *list, struct packet *packet) {
    if (!list->last || list->last->due_ns <= packet->due_ns) {
        list_append(list, packet);
        return;
    }
    struct packet **at = &list->first;
    while ((*at)->due_ns <= packet->due_ns)
        at = &(*at)->next;
    packet->next = *at;
    *at = packet;
    list->count++;
}

void list_free(struct packet_pool *pool, struct packet_list *list) {
    struct packet *packet;
    while ((packet = list_pop(list)))
        packet_free(pool, packet);
}

void packet_pool_free(struct packet_pool *pool) {
    for (int size = 0; size < PACKET_SIZES; size++)
        while (pool->free_packets[size]) {
            struct packet *next = pool->free_packets[size]->next;
            free(pool->free_packets[size]);
            pool->free_packets[size] = next;
        }
    while (pool->free_phv) {
        struct phv *next = pool->free_phv->next;
        free(pool->free_phv);
        pool->free_phv = next;
    }
}
