/* A worker's frames (packing.h). */
#include "packing.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t get_32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static void put_32(uint8_t *at, uint32_t value) {
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

static const uint8_t *lanes_of(const struct gb_gradient_layout *layout, const uint8_t *frame) {
    return frame + layout->frame_bytes - 4 * layout->lanes;
}

int64_t gb_sender_take(struct gb_sender *sender, const struct gb_gradient_layout *layout, const uint8_t *frames,
                       int64_t stride, int64_t count, int64_t now_us, int32_t *sums, int64_t *shifts) {
    uint32_t *numbers = malloc((size_t)count * (sizeof *numbers + 2));
    if (!numbers)
        return -ENOMEM;
    uint8_t *after_resends = (uint8_t *)(numbers + count), *congested = after_resends + count;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *frame = frames + i * stride;
        uint8_t flags = frame[layout->flags];
        numbers[i] = get_32(frame + layout->packet_number);
        after_resends[i] = (flags & layout->after_resend) != 0;
        congested[i] = (frame[layout->tos] & layout->ecn_mask) == layout->ce || (flags & layout->congestion) != 0;
    }
    int64_t news = gb_sender_acknowledge(sender, numbers, after_resends, congested, count, now_us);
    free(numbers);
    for (int64_t i = 0; i < news; i++) {
        const uint8_t *frame = frames + sender->positions[i] * stride;
        const uint8_t *lanes = lanes_of(layout, frame);
        int32_t *row = sums + sender->news[i] * layout->lanes;
        for (int64_t lane = 0; lane < layout->lanes; lane++)
            row[lane] = (int32_t)get_32(lanes + 4 * lane);
        shifts[sender->news[i]] = get_32(frame + layout->magnitude);
    }
    return news;
}

/* Values as lanes; their largest absolute value. */
static uint32_t pack_lanes(uint8_t *lanes, const int32_t *values, int64_t count) {
    uint32_t largest = 0;
    for (int64_t lane = 0; lane < count; lane++) {
        uint32_t value = (uint32_t)values[lane];
        uint32_t absolute = values[lane] < 0 ? 0u - value : value;
        largest = absolute > largest ? absolute : largest;
        put_32(lanes + 4 * lane, value);
    }
    return largest;
}

void gb_sender_pack(const struct gb_sender *sender, const struct gb_gradient_layout *layout, int64_t count,
                    const uint8_t *headers, int64_t header_count, const int32_t *gradient, int64_t values,
                    uint8_t *frames) {
    size_t header_bytes = (size_t)(layout->frame_bytes - 4 * layout->lanes);
    for (int64_t i = 0; i < count; i++) {
        struct gb_transmission transmission = sender->transmissions[i];
        uint8_t *frame = frames + i * layout->frame_bytes, *lanes = frame + header_bytes;
        uint32_t number = sender->first_number + (uint32_t)transmission.fragment;
        int64_t header = transmission.attempt == GB_DIRECT ? header_count : number % header_count;
        int64_t first = transmission.fragment * layout->lanes;
        int64_t there = values - first < layout->lanes ? values - first : layout->lanes;
        memcpy(frame, headers + (size_t)header * header_bytes, header_bytes);
        frame[layout->flags] = (uint8_t)layout->of_attempt[transmission.attempt];
        put_32(frame + layout->packet_number, number);
        put_32(frame + layout->magnitude, pack_lanes(lanes, gradient + first, there));
        memset(lanes + 4 * there, 0, (size_t)(4 * (layout->lanes - there)));
    }
}
