/* A worker's fast path (fast_path.h). */
#include "fast_path.h"

#include <stddef.h>
#include <string.h>

static bool is_known(const struct gb_worker *worker, const uint8_t *frame) {
    for (int64_t i = 0; i < worker->known_count; i++)
        if (!memcmp(frame, worker->known + i * worker->known_bytes, (size_t)worker->known_bytes))
            return true;
    return false;
}

static void send_due(struct gb_worker *worker, int64_t now_us) {
    worker->sent = gb_sender_transmissions(worker->sender, now_us);
    gb_sender_pack(worker->sender, &worker->layout, worker->sent, worker->headers, worker->header_count, worker->gradient,
                   worker->values, worker->out);
    gb_count_classes(worker->words, worker->word_count, worker->sent_classes, worker->out,
                     (uint64_t)worker->layout.frame_bytes, NULL, (uint64_t)worker->sent);
}

int64_t gb_worker_fast_path(struct gb_worker *worker, const uint8_t *frames, uint64_t stride, const uint32_t *lengths,
                            int64_t count, int64_t now_us) {
    worker->sent = 0;
    for (int64_t i = 0; i < count; i++)
        if (lengths[i] != worker->layout.frame_bytes || !is_known(worker, frames + (uint64_t)i * stride))
            return GB_UNUSUAL;
    if (count && gb_sender_take(worker->sender, &worker->layout, frames, (int64_t)stride, count, now_us, worker->sums,
                                worker->shifts) < 0)
        return GB_NO_MEMORY;
    gb_count_classes(worker->words, worker->word_count, worker->received_classes, frames, stride, lengths,
                     (uint64_t)count);
    if (worker->sender->next == worker->sender->count && !worker->sender->outstanding.count)
        return GB_ALL_THERE;
    send_due(worker, now_us);
    return gb_sender_deadline_us(worker->sender);
}
