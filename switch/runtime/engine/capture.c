/* Captures: what passes ports, written as pcap files (draft-ietf-opsawg-pcap, with nanoseconds).
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

enum { LINK_TYPE_ETHERNET = 1 };

struct file_header {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t reserved1, reserved2, snapshot_bytes, link_type;
};

struct frame_header { uint32_t seconds, fraction, captured_bytes, frame_bytes; };

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

void capture_frame(struct gb_engine *engine, struct capture *capture, const struct packet *packet) {
    if (capture->error)
        return;
    uint32_t length = packet->view.length;
    uint64_t wall_ns = engine->now_ns + (uint64_t)capture->wall_ns;
    uint32_t fraction = (uint32_t)(wall_ns % 1000000000);
    struct frame_header header = {(uint32_t)(wall_ns / 1000000000), capture->nanoseconds ? fraction : fraction / 1000,
                                  length, length};
    if (capture->used + sizeof header + length > sizeof capture->buffer)
        flush(capture);
    append(capture, &header, sizeof header);
    append(capture, packet->view.data, length);
    capture->packets++;
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

/* ---- Control ---- */

static int64_t wall_clock_ahead_ns(const struct gb_engine *engine) {
    if (engine->manual_clock)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)real_clock();
}

static int capture_open(struct gb_engine *engine, int descriptor, uint32_t nanoseconds) {
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
    capture->nanoseconds = nanoseconds;
    capture->packets = 0;
    capture->used = 0;
    capture->wall_ns = wall_clock_ahead_ns(engine);
    struct file_header header = {.magic = nanoseconds ? NANOSECONDS_MAGIC : MICROSECONDS_MAGIC,
                                 .major = 2,
                                 .minor = 4,
                                 .snapshot_bytes = 65535,
                                 .link_type = LINK_TYPE_ETHERNET};
    append(capture, &header, sizeof header);
    flush(capture);
    captures[engine->capture_count] = capture;
    return (int)engine->capture_count++;
}

int gb_engine_capture_open(struct gb_engine *engine, int descriptor, uint32_t nanoseconds) {
    engine_lock_control(&engine->lock);
    int outcome = capture_open(engine, descriptor, nanoseconds);
    engine_unlock(&engine->lock);
    return outcome;
}

/* Where the capture of what leaves or enters a port hangs; NULL if there is no such port. */
static struct capture **place(struct gb_engine *engine, struct device *device, uint32_t port, bool outwards) {
    struct direction *out = port < GB_MAX_PORTS ? device->ports[port].out : NULL;
    if (!out)
        return NULL;
    if (outwards)
        return &out->departures;
    if (device->ports[port].in)
        return &device->ports[port].in->arrivals;
    for (uint32_t i = 0; i < engine->direction_count; i++)
        if (engine->directions[i]->to == device && engine->directions[i]->to_port == port)
            return &engine->directions[i]->arrivals;
    return NULL;
}

int gb_engine_capture_port(struct gb_engine *engine, uint32_t capture, uint64_t device_id, uint32_t port,
                           uint32_t outwards) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    struct capture **at = device ? place(engine, device, port, outwards) : NULL;
    int outcome = 0;
    if (!device || capture >= engine->capture_count || !engine->captures[capture])
        outcome = -ESRCH;
    else if (!at)
        outcome = -EINVAL;
    else if (*at)
        outcome = -EEXIST;
    else
        *at = engine->captures[capture];
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_capture_close(struct gb_engine *engine, uint32_t number, uint64_t *packets) {
    int outcome = -ESRCH;
    engine_lock_control(&engine->lock);
    struct capture *capture = number < engine->capture_count ? engine->captures[number] : NULL;
    if (capture) {
        for (uint32_t i = 0; i < engine->direction_count; i++) {
            struct direction *direction = engine->directions[i];
            if (direction->departures == capture)
                direction->departures = NULL;
            if (direction->arrivals == capture)
                direction->arrivals = NULL;
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
