/* A worker's frames, whole: gradients out of a round's lanes, and sums into them. */
#ifndef GRADBED_AGGREGATION_PACKING_H
#define GRADBED_AGGREGATION_PACKING_H

#include "sender.h"

/* Where fields are in a frame, in bytes from its beginning (formats/aggregation.py), and what of them is looked at. Lanes
 * are the frame's last 4 * lanes bytes, big-endian. */
struct gb_gradient_layout {
    int64_t frame_bytes, lanes;
    int64_t tos, flags, packet_number, magnitude;
    int64_t ecn_mask, ce;               /* of tos */
    int64_t after_resend, congestion;   /* of flags */
    int64_t of_attempt[GB_DIRECT + 1];  /* flags of each kind of attempt */
};

/* ACKs, `count` rows of frames, so many bytes apart: what is news goes into sums, shape (fragments, lanes), and shifts, shape (fragments,). How
 * many were, or -ENOMEM. */
int64_t gb_sender_take(struct gb_sender *, const struct gb_gradient_layout *, const uint8_t *frames, int64_t stride,
                       int64_t count, int64_t now_us, int32_t *sums, int64_t *shifts);
/* Frames for the first `count` of sender->transmissions, into as many rows of `frames`. headers: header_count rows, which
 * packet numbers take in turn, and one more for direct copies. gradient: flat, so many values; zeros fill the last fragment
 * up. */
void gb_sender_pack(const struct gb_sender *, const struct gb_gradient_layout *, int64_t count, const uint8_t *headers,
                    int64_t header_count, const int32_t *gradient, int64_t values, uint8_t *frames);

#endif
