/* A worker's turn (turn.h). */
#include "turn.h"

#include <string.h>

static bool is_known(const struct gb_worker *worker, const uint8_t *frame) {
    for (int64_t i = 0; i < worker->known_count; i++)
        if (!memcmp(frame, worker->known + i * worker->known_bytes, (size_t)worker->known_bytes))
            return true;
    return false;
}

static bool all_usual(const struct gb_worker *worker) {
    const struct gb_interface *interface = worker->interface;
    for (int64_t i = 0; i < worker->came; i++)
        if (interface->lengths[i] != worker->layout.frame_bytes
            || !is_known(worker, interface->rows + (uint64_t)i * interface->stride))
            return false;
    return true;
}

static bool send_due(struct gb_worker *worker, int64_t now_us) {
    struct gb_interface *interface = worker->interface;
    int64_t count = gb_sender_transmissions(worker->sender, now_us);
    for (int64_t first = 0; first < count;) {
        int64_t part = count - first < (int64_t)interface->capacity ? count - first : (int64_t)interface->capacity;
        gb_sender_pack(worker->sender, &worker->layout, first, part, worker->headers, worker->header_count,
                       worker->gradient, worker->values, interface->rows);
        if (gb_interface_send(interface, (uint64_t)worker->layout.frame_bytes, part) < 0)
            return false;
        first += part;
    }
    worker->sent = count;
    return true;
}

int64_t gb_worker_turn(struct gb_worker *worker, int64_t now_us) {
    struct gb_interface *interface = worker->interface;
    worker->sent = 0;
    worker->came = gb_interface_receive(interface);
    if (worker->came < 0)
        return GB_UNUSUAL;
    if (worker->came) {
        if (!all_usual(worker))
            return GB_UNUSUAL_CAME;
        if (gb_sender_take(worker->sender, &worker->layout, interface->rows, (int64_t)interface->stride, worker->came,
                           now_us, worker->sums, worker->shifts) < 0)
            return GB_NO_MEMORY;
        gb_interface_received(interface, worker->came);
    }
    if (worker->sender->next == worker->sender->count && !worker->sender->unacknowledged)
        return GB_ALL_THERE;
    if (!send_due(worker, now_us))
        return GB_NO_MEMORY;
    return gb_sender_deadline_us(worker->sender);
}
