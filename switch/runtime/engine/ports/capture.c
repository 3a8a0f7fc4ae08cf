/* Captures: what passes ports, written as pcap files (draft-ietf-opsawg-pcap, with nanoseconds) or as pcapng
 * (draft-ietf-opsawg-pcapng), of which whoever opens the file writes the headers, and this the packets.
 *
 * The data plane writes to memory, and to the files when it has nothing else to do or the memory is full. A file that
 * cannot be written to (disk full) ends its capture, not the packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/internal.h"

enum { LINK_TYPE_ETHERNET = 1, ENHANCED_PACKET_BLOCK = 6, OPTION_END = 0, OPTION_COMMENT = 1, OPTION_FLAGS = 2 };

struct file_header {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t reserved1, reserved2, snapshot_bytes, link_type;
};

struct frame_header { uint32_t seconds, fraction, captured_bytes, frame_bytes; };

struct packet_block {
    uint32_t type, block_bytes, interface, time_high, time_low, captured_bytes, frame_bytes;
};

struct option { uint16_t code, length; };

static const char LOST[] = "lost on the link";

/* What libpcap takes for the longest that there is. */
static const uint32_t SNAPSHOT_BYTES = 262144;

static const uint32_t NANOSECONDS_MAGIC = 0xa1b23c4d, MICROSECONDS_MAGIC = 0xa1b2c3d4;

static void flush(struct capture *capture) {
    uint32_t written = 0;
    while (written < capture->used && !capture->error) {
        ssize_t count = write(capture->descriptor, capture->buffer + written, capture->used - written);
        if (count >= 0)
            written += (uint32_t)count;
        else if (errno != EINTR)
            capture->error = errno;
    }
    capture->used = 0;
}

static void append(struct capture *capture, const void *data, uint32_t length) {
    memcpy(capture->buffer + capture->used, data, length);
    capture->used += length;
}

static void reserve(struct capture *capture, uint32_t length) {
    if (capture->used + length > sizeof capture->buffer)
        flush(capture);
}

static void append_record(struct capture *capture, const struct packet *packet, uint64_t wall_ns) {
    uint32_t length = packet->view.length, fraction = (uint32_t)(wall_ns % 1000000000);
    struct frame_header header = {(uint32_t)(wall_ns / 1000000000),
                                  capture->format == GB_CAPTURE_NANOSECONDS ? fraction : fraction / 1000, length,
                                  length};
    reserve(capture, sizeof header + length);
    append(capture, &header, sizeof header);
    append(capture, packet->view.data, length);
}

static uint32_t padded(uint32_t length) {
    return (length + 3) & ~3u;
}

/* The data of fields and options are padded to 32 bits. */
static void append_padded(struct capture *capture, const void *data, uint32_t length) {
    append(capture, data, length);
    append(capture, &(uint32_t){0}, padded(length) - length);
}

static void append_block(struct capture *capture, const struct tap *tap, const struct packet *packet,
                         uint64_t wall_ns, bool lost) {
    uint32_t length = packet->view.length, comment_bytes = (uint32_t)strlen(LOST);
    struct option flags = {OPTION_FLAGS, sizeof tap->flags}, comment = {OPTION_COMMENT, (uint16_t)comment_bytes},
                  last = {OPTION_END, 0};
    struct packet_block block = {.type = ENHANCED_PACKET_BLOCK,
                                 .interface = tap->interface,
                                 .time_high = (uint32_t)(wall_ns >> 32),
                                 .time_low = (uint32_t)wall_ns,
                                 .captured_bytes = length,
                                 .frame_bytes = length};
    block.block_bytes = sizeof block + padded(length) + sizeof flags + sizeof tap->flags +
                        (lost ? sizeof comment + padded(comment_bytes) : 0) + sizeof last + sizeof block.block_bytes;
    reserve(capture, block.block_bytes);
    append(capture, &block, sizeof block);
    append_padded(capture, packet->view.data, length);
    append(capture, &flags, sizeof flags);
    append(capture, &tap->flags, sizeof tap->flags);
    if (lost) {
        append(capture, &comment, sizeof comment);
        append_padded(capture, LOST, comment_bytes);
    }
    append(capture, &last, sizeof last);
    append(capture, &block.block_bytes, sizeof block.block_bytes);
}

static bool over(const struct logical_process *lp, const struct capture *capture) {
    return capture->error || capture->packets >= capture->most_packets || lp->now_ns >= capture->end_ns;
}

void captures_take(struct logical_process *lp, const struct tap *first, const struct packet *packet, bool lost) {
    for (const struct tap *tap = first; tap; tap = tap->next) {
        struct capture *capture = tap->capture;
        if (over(lp, capture))
            continue;
        uint64_t wall_ns = lp->now_ns + (uint64_t)capture->wall_ns;
        if (capture->format == GB_CAPTURE_PCAPNG)
            append_block(capture, tap, packet, wall_ns, lost);
        else
            append_record(capture, packet, wall_ns);
        capture->packets++;
    }
}

void captures_flush(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->capture_count; i++)
        if (engine->captures[i] && engine->captures[i]->used)
            flush(engine->captures[i]);
}

static void end(struct capture *capture) {
    flush(capture);
    close(capture->descriptor);
}

void captures_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->capture_count; i++)
        if (engine->captures[i]) {
            end(engine->captures[i]);
            free(engine->captures[i]);
        }
    free(engine->captures);
}

void taps_free(struct tap *tap) {
    while (tap) {
        struct tap *next = tap->next;
        free(tap);
        tap = next;
    }
}

/* ---- Control ---- */

static int64_t wall_clock_ahead_ns(const struct gb_engine *engine) {
    if (engine->manual_clock)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)real_clock();
}

static void append_file_header(struct capture *capture) {
    struct file_header header = {
        .magic = capture->format == GB_CAPTURE_NANOSECONDS ? NANOSECONDS_MAGIC : MICROSECONDS_MAGIC,
        .major = 2,
        .minor = 4,
        .snapshot_bytes = SNAPSHOT_BYTES,
        .link_type = LINK_TYPE_ETHERNET};
    append(capture, &header, sizeof header);
    flush(capture);
}

static int capture_open(struct gb_engine *engine, int descriptor, uint32_t format) {
    struct capture **captures = realloc(engine->captures, (engine->capture_count + 1) * sizeof *captures);
    if (captures)
        engine->captures = captures;
    struct capture *capture = malloc(sizeof *capture);
    if (!captures || !capture) {
        free(capture);
        close(descriptor);
        return -ENOMEM;
    }
    capture->descriptor = descriptor;
    capture->error = 0;
    capture->format = format;
    capture->packets = 0;
    capture->most_packets = capture->end_ns = UINT64_MAX;
    capture->used = 0;
    capture->wall_ns = wall_clock_ahead_ns(engine);
    if (format != GB_CAPTURE_PCAPNG)
        append_file_header(capture);
    captures[engine->capture_count] = capture;
    return (int)engine->capture_count++;
}

int gb_engine_capture_open(struct gb_engine *engine, int descriptor, uint32_t format) {
    engine_lock_control(&engine->lock);
    int outcome = capture_open(engine, descriptor, format);
    engine_unlock(&engine->lock);
    return outcome;
}

/* What leaves or enters a port; NULL if there is no such port. */
static struct link_direction *direction_at(struct gb_engine *engine, struct device *device, uint32_t port, bool outwards) {
    struct link_direction *out = port < GB_MAX_PORTS ? device->ports[port].out : NULL;
    if (!out || outwards)
        return out;
    if (device->ports[port].in)
        return device->ports[port].in;
    for (uint32_t i = 0; i < engine->direction_count; i++)
        if (engine->directions[i]->to == device && engine->directions[i]->to_port == port)
            return engine->directions[i];
    return NULL;
}

static struct capture *capture_numbered(const struct gb_engine *engine, uint32_t number) {
    return number < engine->capture_count ? engine->captures[number] : NULL;
}

static int capture_tap(struct gb_engine *engine, uint32_t number, uint64_t device_id, uint32_t port,
                       const struct gb_capture_tap *wanted) {
    struct capture *capture = capture_numbered(engine, number);
    struct device *device = engine_device(engine, device_id);
    if (!capture || !device)
        return -ESRCH;
    struct link_direction *direction = direction_at(engine, device, port, wanted->outwards);
    if (!direction)
        return -EINVAL;
    struct tap **place = wanted->arriving ? &direction->arrivals : &direction->departures;
    for (; *place; place = &(*place)->next)
        if ((*place)->capture == capture)
            return -EEXIST;
    struct tap *tap = malloc(sizeof *tap);
    if (!tap)
        return -ENOMEM;
    *tap = (struct tap){.capture = capture, .interface = wanted->interface, .flags = wanted->flags};
    *place = tap;
    direction->tapped = true;
    return 0;
}

int gb_engine_capture_tap(struct gb_engine *engine, uint32_t capture, uint64_t device_id, uint32_t port,
                          const struct gb_capture_tap *wanted) {
    engine_lock_control(&engine->lock);
    int outcome = capture_tap(engine, capture, device_id, port, wanted);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_capture_limit(struct gb_engine *engine, uint32_t number, uint64_t packets, uint64_t for_ns) {
    engine_lock_control(&engine->lock);
    struct capture *capture = capture_numbered(engine, number);
    if (capture) {
        uint64_t now_ns = engine->manual_clock ? engine->now_ns : real_clock();
        capture->most_packets = packets;
        capture->end_ns = for_ns < UINT64_MAX - now_ns ? now_ns + for_ns : UINT64_MAX;
    }
    engine_unlock(&engine->lock);
    return capture ? 0 : -ESRCH;
}

int gb_engine_capture_state(struct gb_engine *engine, uint32_t number, uint64_t *packets) {
    engine_lock_control(&engine->lock);
    struct capture *capture = capture_numbered(engine, number);
    int outcome = -ESRCH;
    if (capture) {
        uint64_t now_ns = engine->manual_clock ? engine->now_ns : real_clock();
        *packets = capture->packets;
        outcome = capture->error || capture->packets >= capture->most_packets || now_ns >= capture->end_ns;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

static void remove_taps(struct tap **next, const struct capture *capture) {
    while (*next) {
        struct tap *tap = *next;
        if (tap->capture == capture) {
            *next = tap->next;
            free(tap);
        } else {
            next = &tap->next;
        }
    }
}

int gb_engine_capture_close(struct gb_engine *engine, uint32_t number, uint64_t *packets) {
    int outcome = -ESRCH;
    engine_lock_control(&engine->lock);
    struct capture *capture = capture_numbered(engine, number);
    if (capture) {
        for (uint32_t i = 0; i < engine->direction_count; i++) {
            struct link_direction *direction = engine->directions[i];
            remove_taps(&direction->departures, capture);
            remove_taps(&direction->arrivals, capture);
            direction->tapped = direction->departures || direction->arrivals;
        }
        end(capture);
        *packets = capture->packets;
        outcome = -capture->error;
        free(capture);
        engine->captures[number] = NULL;
    }
    engine_unlock(&engine->lock);
    return outcome;
}
