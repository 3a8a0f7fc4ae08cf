/* Packets and their passes: taken from the system as needed, kept for the next packet.
 *
 * A packet and its buffer are one piece of memory, of one of a few sizes. A frame lies at the end of its buffer, so
 * that all the spare room is headroom, where deparsers put what they add.
 *
 * Hollow packets have headers, and a payload that is a length alone: whoever looks sees zeros. Their buffers are kept
 * apart, unless they are small. Such a buffer is always zero from zeros_from on, so there is no need to write or copy what
 * is not there; and untouched memory takes no room.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/internal.h"

enum { ALIGNMENT = 64 };

/* Of buffers: for acknowledgements and the like, for an MTU of 1,500, for that and long headers, for an MTU of 4,096,
 * for jumbo frames with short and with long headers, and for what IPv4 can carry at most; then those of hollow packets. */
static const uint32_t SIZES[PACKET_SIZES] = {448, 1984, 4096, 6144, 12288, 32768, 82048, 1984, 6144, 82048};
enum { FIRST_HOLLOW = 7 };          /* smaller than a page, so that it lies with the others */

enum { SLAB_PACKETS = 32, PAGE_BYTES = 4096 };

/* Memory for hollow packets, which goes back to the system as a whole. */
struct slab { struct slab *next; size_t bytes; };

/* A storm (packets that multiply in a loop) must not take the machine's memory. */
static const uint64_t LIMIT_BYTES = UINT64_C(1) << 30;

/* Where the buffer begins; a multiple of ALIGNMENT. */
static const size_t BUFFER_OFFSET = (sizeof(struct packet) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

static uint8_t *buffer_of(const struct packet *packet) {
    return (uint8_t *)packet + BUFFER_OFFSET;
}

static struct packet *packet_new(struct packet_pool *pool, uint8_t size) {
    size_t bytes = BUFFER_OFFSET + SIZES[size];
    if (*pool->bytes + bytes > LIMIT_BYTES)
        return NULL;
    struct packet *packet = arena_take(&pool->arena, bytes);
    if (!packet)
        return NULL;
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

static struct packet *take_of_size(struct packet_pool *pool, uint8_t size) {
    struct packet *packet = pool->free_packets[size];
    if (packet)
        pool->free_packets[size] = packet->next;
    return packet;
}

static void begin(struct packet_pool *pool, struct packet *packet) {
    packet->view.pass = NULL;
    packet->view.payload_offset = 0;
    packet->view.keep_metadata = 0;
    packet->next = NULL;
    packet->direction = NULL;
    packet->truncate_bytes = UINT32_MAX;
    packet->stage = STAGE_PARSE;
    packet->class_number = 0;
    packet->duplicate = false;
    packet->buffered_bytes = 0;
    packet->came_by = NULL;
    pool->live++;
}

struct packet *packet_take(struct packet_pool *pool, uint32_t headroom, uint32_t room) {
    uint8_t size = 0;
    while (!fits(size, headroom, room))
        if (++size == FIRST_HOLLOW)
            return NULL;
    struct packet *packet = take_of_size(pool, size);
    if (!packet && !(packet = packet_new(pool, size)))
        return NULL;
    packet_place(packet, room);
    begin(pool, packet);
    return packet;
}

/* ---- Hollow packets ---- */

static struct packet *hollow_new_small(struct packet_pool *pool) {
    struct packet *packet = packet_new(pool, FIRST_HOLLOW);
    if (packet) {
        packet->zeros_from = buffer_of(packet);
        packet->touched_bytes = (uint32_t)BUFFER_OFFSET + SIZES[FIRST_HOLLOW];
    }
    return packet;
}

/* More of a size, on the free list. An odd number of lines of the cache lies between two, so that their headers do not
 * fall on the same lines. */
static bool hollow_more(struct packet_pool *pool, uint8_t size) {
    size_t stride = (BUFFER_OFFSET + SIZES[size]) | ALIGNMENT, bytes = ALIGNMENT + SLAB_PACKETS * stride;
    if (*pool->bytes + SLAB_PACKETS * PAGE_BYTES > LIMIT_BYTES)
        return false;
    struct slab *slab = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED)
        return false;
    /* A large page would be touched as a whole. */
    madvise(slab, bytes, MADV_NOHUGEPAGE);
    *slab = (struct slab){pool->slabs, bytes};
    pool->slabs = slab;
    *pool->bytes += SLAB_PACKETS * PAGE_BYTES;
    for (uint32_t i = SLAB_PACKETS; i-- > 0;) {
        struct packet *packet = (struct packet *)((uint8_t *)slab + ALIGNMENT + i * stride);
        packet->size = size;
        packet->zeros_from = buffer_of(packet);
        packet->touched_bytes = PAGE_BYTES;
        packet_pool_take(pool, packet);
    }
    return true;
}

/* The buffer has been written to up to zeros_from. What is counted never grows less. */
static void count_touched(struct packet_pool *pool, struct packet *packet) {
    uint32_t touched = (uint32_t)(packet->zeros_from - (uint8_t *)packet);
    if (touched > packet->touched_bytes) {
        *pool->bytes += touched - packet->touched_bytes;
        packet->touched_bytes = touched;
    }
}

struct packet *packet_take_hollow(struct packet_pool *pool, uint32_t headroom, uint32_t real, uint32_t length) {
    uint8_t size = FIRST_HOLLOW;
    headroom = (headroom + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while ((uint64_t)headroom + length > SIZES[size])
        if (++size == PACKET_SIZES)
            return NULL;
    struct packet *packet = take_of_size(pool, size);
    if (!packet && size == FIRST_HOLLOW)
        packet = hollow_new_small(pool);
    else if (!packet && hollow_more(pool, size))
        packet = take_of_size(pool, size);
    if (!packet)
        return NULL;
    count_touched(pool, packet);
    packet->view.data = buffer_of(packet) + headroom;
    packet->view.headroom = headroom;
    packet->view.length = length;
    uint8_t *end = packet->view.data + real;
    if (packet->zeros_from > end)
        memset(end, 0, (size_t)(packet->zeros_from - end));
    packet->zeros_from = end;
    begin(pool, packet);
    return packet;
}

/* Of the frame, how many bytes are not zero for sure. */
static uint32_t real_bytes(const struct packet *packet) {
    const struct gb_packet *view = &packet->view;
    if (packet->zeros_from <= view->data)
        return 0;
    uint64_t real = (uint64_t)(packet->zeros_from - view->data);
    return real < view->length ? (uint32_t)real : view->length;
}

static struct packet *copy_hollow(struct packet_pool *pool, const struct packet *from, uint32_t headroom) {
    uint32_t real = real_bytes(from);
    struct packet *copy = packet_take_hollow(pool, headroom, real, from->view.length);
    if (copy)
        memcpy(copy->view.data, from->view.data, real);
    return copy;
}

/* ---- Copies ---- */

struct packet *packet_from_bytes(struct packet_pool *pool, const uint8_t *data, uint32_t length, uint32_t headroom) {
    struct packet *packet = packet_take(pool, headroom, length);
    if (packet) {
        memcpy(packet->view.data, data, length);
        packet->view.length = length;
    }
    return packet;
}

struct packet *packet_copy_frame(struct packet_pool *pool, const struct packet *from, uint32_t headroom) {
    struct packet *copy = from->zeros_from ? copy_hollow(pool, from, headroom)
                                           : packet_from_bytes(pool, from->view.data, from->view.length, headroom);
    if (copy) {
        copy->device = from->device;
        copy->port = from->port;
        copy->due_ns = from->due_ns;
        copy->class_number = from->class_number;
        copy->came_by = from->came_by;
        copy->came_priority = from->came_priority;
    }
    return copy;
}

struct packet *packet_copy_parsed(struct packet_pool *pool, const struct packet *from,
                                  const struct gb_program *program) {
    const struct gb_packet *view = &from->view;
    struct packet *copy = from->zeros_from ? copy_hollow(pool, from, program->max_header_bytes)
                                           : packet_take(pool, program->max_header_bytes, view->length);
    if (!copy)
        return NULL;
    copy->view.pass = context_take(pool, program->phv_words);
    if (!copy->view.pass) {
        packet_free(pool, copy);
        return NULL;
    }
    /* Headers are in the PHV; the deparser writes them out again in front of the payload. */
    if (!from->zeros_from)
        memcpy(copy->view.data + view->payload_offset, view->data + view->payload_offset,
               view->length - view->payload_offset);
    memcpy(copy->view.pass->phv, view->pass->phv, (size_t)program->phv_words * sizeof *view->pass->phv);
    copy->view.length = view->length;
    copy->view.payload_offset = view->payload_offset;
    copy->view.pass->std = view->pass->std;
    copy->device = from->device;
    copy->truncate_bytes = from->truncate_bytes;
    copy->class_number = from->class_number;
    copy->came_by = from->came_by;
    copy->came_priority = from->came_priority;
    return copy;
}

struct packet *packet_with_headroom(struct packet_pool *pool, struct packet *packet, uint32_t headroom) {
    struct gb_packet *view = &packet->view;
    uint32_t length = view->length;
    if (view->headroom >= headroom)
        return packet;
    if (!packet->zeros_from && fits(packet->size, headroom, length)) {
        const uint8_t *old_data = view->data;
        packet_place(packet, length);
        memmove(view->data, old_data, length);
        view->length = length;
        return packet;
    }
    struct packet *larger =
        packet->zeros_from ? copy_hollow(pool, packet, headroom) : packet_take(pool, headroom, length);
    if (!larger)
        return NULL;
    struct packet place = *larger;
    *larger = *packet;
    larger->size = place.size;
    larger->zeros_from = place.zeros_from;
    larger->touched_bytes = place.touched_bytes;
    larger->view.data = place.view.data;
    larger->view.headroom = place.view.headroom;
    if (!packet->zeros_from)
        memcpy(larger->view.data, view->data, length);
    view->pass = NULL;
    packet_free(pool, packet);
    return larger;
}

/* On the free list. */
struct idle_context { struct idle_context *next; uint32_t words; struct gb_packet_context pass; };

static size_t bytes_of_pass(uint32_t words) {
    return sizeof(struct idle_context) + words * sizeof(uint64_t);
}

struct gb_packet_context *context_take(struct packet_pool *pool, uint32_t words) {
    struct idle_context *pass;
    while ((pass = pool->free_passes)) {
        pool->free_passes = pass->next;
        if (pass->words >= words)
            return &pass->pass;
        /* Left from a time when no program needed more. */
        *pool->bytes -= bytes_of_pass(pass->words);
        free(pass);
    }
    if (words < pool->phv_words)
        words = pool->phv_words;
    pass = calloc(1, bytes_of_pass(words));
    if (!pass)
        return NULL;
    pass->words = words;
    *pool->bytes += bytes_of_pass(words);
    return &pass->pass;
}

void context_give(struct packet_pool *pool, struct gb_packet_context *given) {
    if (!given)
        return;
    struct idle_context *pass = (struct idle_context *)((char *)given - offsetof(struct idle_context, pass));
    pass->next = pool->free_passes;
    pool->free_passes = pass;
}

void packet_free(struct packet_pool *pool, struct packet *packet) {
    context_give(pool, packet->view.pass);
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
    arena_free(&pool->arena);
    while (pool->free_passes) {
        struct idle_context *next = pool->free_passes->next;
        free(pool->free_passes);
        pool->free_passes = next;
    }
}

void packet_pool_free_hollow(struct packet_pool *pool) {
    while (pool->slabs) {
        struct slab *slab = pool->slabs;
        pool->slabs = slab->next;
        munmap(slab, slab->bytes);
    }
}
