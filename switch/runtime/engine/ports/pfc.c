/* Priority-based flow control: a switch that holds too much of what came by a link lets the other end pause.
 *
 * What counts are bytes of packets that wait in the switch's queues, by the link by which they came and the priority that
 * they had there. Above xoff the switch sends a pause frame for that priority, at xon and below another one that ends it
 * (IEEE 802.1Qbb; 802.1Q-2018, clause 36; the frame: 802.3, annex 31D). Such a frame goes ahead of all that waits, takes its
 * time on the link, and is never lost: a real port sends it again until it has worked. A pause does not end by time.
 *
 * A packet counts from when it has to wait until the transmitter begins to send it: what is sent at once needs no buffer.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ports/pfc.h"

bool pfc_prepare(struct link_direction *direction) {
    if (direction->pfc || !direction->model->pfc_xoff_bytes)
        return true;
    direction->pfc = aligned_alloc(APART, sizeof *direction->pfc);
    if (!direction->pfc)
        return false;
    memset(direction->pfc, 0, sizeof *direction->pfc);
    direction->has_pfc = true;
    return true;
}

void pfc_free(struct link_direction *direction) {
    free(direction->pfc);
}

uint32_t pfc_priority(const struct packet *packet) {
    const uint8_t *data = packet->view.data;
    if (packet->view.length < 16)
        return 0;
    uint32_t ether_type = (uint32_t)data[12] << 8 | data[13];
    if (ether_type == 0x8100)
        return data[14] >> 5;
    return ether_type == 0x0800 ? data[15] >> 5 : 0;
}

/* A frame that pauses the priority for good, or resumes it. */
static void write_frame(struct packet *packet, uint32_t priority, bool pause) {
    static const uint8_t BEGINNING[] = {0x01, 0x80, 0xc2, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0x88, 0x08, 0x01, 0x01, 0};
    uint8_t *data = packet->view.data;
    memset(data, 0, PAUSE_FRAME_BYTES);
    memcpy(data, BEGINNING, sizeof BEGINNING);
    data[sizeof BEGINNING] = (uint8_t)(1u << priority);
    if (pause)
        memset(data + sizeof BEGINNING + 1 + 2 * priority, 0xff, 2);
    packet->view.length = PAUSE_FRAME_BYTES;
    packet->stage = STAGE_PAUSE;
    packet->priority = (uint8_t)priority;
    packet->pauses = pause;
}

/* Send a PFC frame that pauses a priority or lets it go on; false when out of memory. */
static bool send_pause(struct logical_process *lp, struct link_direction *direction, uint32_t priority, bool pause) {
    struct packet *frame = packet_take(&lp->pool, 0, PAUSE_FRAME_BYTES);
    if (!frame)
        return false;
    write_frame(frame, priority, pause);
    direction->statistics.pauses_sent[priority] += pause;
    direction_send_ahead(lp, direction->back, frame);
    return true;
}

void pfc_hold(struct logical_process *lp, struct packet *packet) {
    struct link_direction *direction = packet->came_by;
    struct pfc *pfc = direction->pfc;
    uint32_t priority = packet->came_priority, bit = 1u << priority;
    uint64_t xoff_bytes = direction->model->pfc_xoff_bytes;
    packet->buffered_bytes = packet->view.length;
    pfc->buffered_bytes[priority] += packet->buffered_bytes;
    if (xoff_bytes && pfc->buffered_bytes[priority] > xoff_bytes && !(pfc->asked & bit) &&
        send_pause(lp, direction, priority, true))
        pfc->asked |= (uint8_t)bit;
}

void pfc_release(struct logical_process *lp, struct buffered buffered) {
    if (!buffered.bytes)
        return;
    struct pfc *pfc = buffered.by->pfc;
    uint32_t bit = 1u << buffered.priority;
    pfc->buffered_bytes[buffered.priority] -= buffered.bytes;
    if ((pfc->asked & bit) && pfc->buffered_bytes[buffered.priority] <= buffered.by->model->pfc_xon_bytes &&
        send_pause(lp, buffered.by, buffered.priority, false))
        pfc->asked &= (uint8_t)~bit;
}

void pfc_take(struct logical_process *lp, struct link_direction *back, struct packet *frame) {
    struct link_direction *direction = back->back;
    struct pfc *pfc = direction->pfc;
    uint32_t priority = frame->priority;
    if (frame->pauses) {
        pfc->since_ns[priority] = lp->now_ns;
        direction->statistics.pauses_received[priority]++;
        direction->paused |= (uint8_t)(1u << priority);
    } else {
        direction->statistics.paused_ns[priority] += lp->now_ns - pfc->since_ns[priority];
        direction->paused &= (uint8_t)~(1u << priority);
    }
    packet_free(&lp->pool, frame);
    direction_resume(lp, direction);
}

void pfc_add_running(const struct link_direction *direction, uint64_t now_ns, struct gb_link_statistics *row) {
    for (uint32_t priority = 0; direction->paused >> priority; priority++)
        if (direction_paused(direction, priority))
            row->paused_ns[priority] += now_ns - direction->pfc->since_ns[priority];
}
