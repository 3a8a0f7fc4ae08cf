/* A host's NIC: whose turn it is to send, and whose an arriving packet is. */
#include "engine/transport/nic.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/ports/classes.h"
#include "engine/transport/roce.h"
#include "engine/transport/stream.h"

enum { FIRST_TABLE = 16, TIMERS_PER_PAIR = 2, RESERVED_PAIRS = 64 };

/* ---- The pairs by number ---- */

static uint32_t place_of(const struct nic *nic, uint32_t number) {
    uint32_t place = number * 0x9e3779b1u >> 8;
    for (;; place++) {
        const struct queue_pair *pair = nic->table[place & (nic->table_size - 1)];
        if (!pair || pair->options.number == number)
            return place & (nic->table_size - 1);
    }
}

struct queue_pair *nic_pair(const struct nic *nic, uint32_t number) {
    return nic->table_size ? nic->table[place_of(nic, number)] : NULL;
}

/* At most half of the table is taken. */
static bool make_room(struct nic *nic) {
    if (2 * (nic->pairs + 1) <= nic->table_size)
        return true;
    uint32_t old_size = nic->table_size, size = old_size ? 2 * old_size : FIRST_TABLE;
    struct queue_pair **old = nic->table, **table = calloc(size, sizeof *table);
    if (!table)
        return false;
    nic->table = table;
    nic->table_size = size;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i])
            table[place_of(nic, old[i]->options.number)] = old[i];
    free(old);
    return true;
}

int nic_add(struct nic *nic, struct queue_pair *pair) {
    if (nic_pair(nic, pair->options.number))
        return -EEXIST;
    if (nic->timers < nic->pairs + 1) {
        if (!lps_reserve(nic->port->lp->engine, TIMERS_PER_PAIR * RESERVED_PAIRS))
            return -ENOMEM;
        nic->timers += RESERVED_PAIRS;
    }
    if (!make_room(nic))
        return -ENOMEM;
    nic->table[place_of(nic, pair->options.number)] = pair;
    nic->pairs++;
    pair->nic = nic;
    return 0;
}

void nic_remove(struct nic *nic, struct queue_pair *pair) {
    uint32_t mask = nic->table_size - 1, place = place_of(nic, pair->options.number);
    nic->table[place] = NULL;
    nic->pairs--;
    /* Those behind it may have been put there because its place was taken. */
    for (uint32_t next = (place + 1) & mask; nic->table[next]; next = (next + 1) & mask) {
        struct queue_pair *moved = nic->table[next];
        nic->table[next] = NULL;
        nic->table[place_of(nic, moved->options.number)] = moved;
    }
}

/* ---- Whose turn it is ---- */

static void resume(struct logical_process *lp, struct nic *nic) {
    /* Otherwise it asks when it is free. */
    if (!timer_armed(&nic->link->departure))
        direction_resume(lp, nic->link);
}

static void append_control(struct nic *nic, struct queue_pair *pair) {
    struct pair_list *list = &nic->control[pair->options.priority];
    pair->next_control = NULL;
    *(list->last ? &list->last->next_control : &list->first) = pair;
    list->last = pair;
    pair->on_control = true;
    nic->control_ready |= 1u << pair->options.priority;
}

static void append_data(struct nic *nic, struct queue_pair *pair) {
    struct pair_list *list = &nic->data[pair->options.priority];
    pair->next_data = NULL;
    *(list->last ? &list->last->next_data : &list->first) = pair;
    list->last = pair;
    pair->on_data = true;
    nic->data_ready |= 1u << pair->options.priority;
}

static struct queue_pair *pop_control(struct nic *nic, uint32_t priority) {
    struct pair_list *list = &nic->control[priority];
    struct queue_pair *pair = list->first;
    list->first = pair->next_control;
    if (!list->first) {
        list->last = NULL;
        nic->control_ready &= ~(1u << priority);
    }
    pair->on_control = false;
    return pair;
}

static struct queue_pair *pop_data(struct nic *nic, uint32_t priority) {
    struct pair_list *list = &nic->data[priority];
    struct queue_pair *pair = list->first;
    list->first = pair->next_data;
    if (!list->first) {
        list->last = NULL;
        nic->data_ready &= ~(1u << priority);
    }
    pair->on_data = false;
    return pair;
}

void nic_wants_control(struct logical_process *lp, struct queue_pair *pair) {
    if (pair->on_control)
        return;
    append_control(pair->nic, pair);
    resume(lp, pair->nic);
}

void nic_wants_data(struct logical_process *lp, struct queue_pair *pair) {
    append_data(pair->nic, pair);
    resume(lp, pair->nic);
}

void nic_forget(struct nic *nic, struct queue_pair *pair) {
    uint32_t priority = pair->options.priority;
    /* Round the list once, without the pair. */
    if (pair->on_control) {
        struct queue_pair *last = nic->control[priority].last, *each;
        do {
            each = pop_control(nic, priority);
            if (each != pair)
                append_control(nic, each);
        } while (each != last);
    }
    if (pair->on_data) {
        struct queue_pair *last = nic->data[priority].last, *each;
        do {
            each = pop_data(nic, priority);
            if (each != pair)
                append_data(nic, each);
        } while (each != last);
    }
}

static uint32_t largest(uint32_t priorities) {
    return 31 - (uint32_t)__builtin_clz(priorities);
}

/* Without the priorities that are paused. */
static uint32_t may_send(const struct nic *nic, uint32_t ready) {
    return ready & ~(uint32_t)nic->link->paused;
}

static struct packet *next_control(struct logical_process *lp, struct nic *nic, struct queue_pair **of) {
    while (may_send(nic, nic->control_ready)) {
        struct queue_pair *pair = *of = pop_control(nic, largest(may_send(nic, nic->control_ready)));
        struct packet *packet = receiver_next(lp, pair);
        if (packet && receiver_wants(pair))
            append_control(nic, pair);
        if (packet)
            return packet;
    }
    return NULL;
}

static struct packet *next_data(struct logical_process *lp, struct nic *nic, struct queue_pair **of) {
    while (may_send(nic, nic->data_ready)) {
        struct queue_pair *pair = *of = pop_data(nic, largest(may_send(nic, nic->data_ready)));
        struct packet *packet = sender_may(pair) ? sender_next(lp, pair) : NULL;
        if (!packet)
            continue;
        if (pair->sender.pace_ns > lp->now_ns)
            sender_go_on(lp, pair);
        else if (sender_may(pair))
            append_data(nic, pair);
        return packet;
    }
    return NULL;
}

struct packet *nic_next(struct logical_process *lp, struct nic *nic) {
    struct queue_pair *pair;
    struct packet *packet = next_control(lp, nic, &pair);
    if (!packet && !(packet = next_data(lp, nic, &pair)))
        return NULL;
    struct gb_consumer_counts *counts = &pair->consumer->counts;
    nic->link->entered_bytes += packet->view.length;
    if (nic->link->classes)
        classes_entered(nic->link, packet);
    counts->sent_frames++;
    counts->sent_bytes += packet->view.length;
    counts->sent_classes[packet->class_number]++;
    return packet;
}

/* ---- Arrivals ---- */

static bool give(struct logical_process *lp, struct queue_pair *pair, struct packet *packet) {
    struct arrival arrival;
    struct acknowledgement ack;
    if (roce_read_data(packet, &arrival)) {
        receiver_take(lp, pair, packet, &arrival);
        return true;
    }
    if (roce_read_acknowledgement(packet, &ack))
        sender_acknowledged(lp, pair, &ack);
    else if (roce_opcode(packet) == CNP)
        congestion_notified(pair, lp->now_ns);
    else
        return false;
    packet_free(&lp->pool, packet);
    return true;
}

bool nic_take(struct logical_process *lp, struct nic *nic, struct packet *packet) {
    if (nic->streams && streams_take(lp, nic, packet))
        return true;
    if (!nic->consumers || !roce_is(packet))
        return false;
    struct queue_pair *pair = nic_pair(nic, roce_pair(packet));
    if (pair) {
        struct gb_consumer_counts *counts = &pair->consumer->counts;
        counts->received_frames++;
        counts->received_bytes += packet->view.length;
        counts->received_classes[packet->class_number]++;
        if (!pair->failed && roce_belongs(pair, packet) && give(lp, pair, packet))
            return true;
    }
    nic->unknown++;
    packet_free(&lp->pool, packet);
    return true;
}

void nic_free(struct nic *nic) {
    if (nic)
        free(nic->table);
    free(nic);
}
