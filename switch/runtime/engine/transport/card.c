/* A host's network card: whose turn it is to send, and whose an arriving packet is. */
#include "engine/transport/card.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/ports/classes.h"
#include "engine/transport/roce.h"
#include "engine/transport/stream.h"

enum { FIRST_TABLE = 16, TIMERS_PER_PAIR = 2, RESERVED_PAIRS = 64 };

/* ---- The pairs by number ---- */

static uint32_t place_of(const struct card *card, uint32_t number) {
    uint32_t place = number * 0x9e3779b1u >> 8;
    for (;; place++) {
        const struct queue_pair *pair = card->table[place & (card->table_size - 1)];
        if (!pair || pair->options.number == number)
            return place & (card->table_size - 1);
    }
}

struct queue_pair *card_pair(const struct card *card, uint32_t number) {
    return card->table_size ? card->table[place_of(card, number)] : NULL;
}

/* At most half of the table is taken. */
static bool make_room(struct card *card) {
    if (2 * (card->pairs + 1) <= card->table_size)
        return true;
    uint32_t old_size = card->table_size, size = old_size ? 2 * old_size : FIRST_TABLE;
    struct queue_pair **old = card->table, **table = calloc(size, sizeof *table);
    if (!table)
        return false;
    card->table = table;
    card->table_size = size;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i])
            table[place_of(card, old[i]->options.number)] = old[i];
    free(old);
    return true;
}

int card_add(struct card *card, struct queue_pair *pair) {
    if (card_pair(card, pair->options.number))
        return -EEXIST;
    if (card->timers < card->pairs + 1) {
        if (!lps_reserve(card->port->lp->engine, TIMERS_PER_PAIR * RESERVED_PAIRS))
            return -ENOMEM;
        card->timers += RESERVED_PAIRS;
    }
    if (!make_room(card))
        return -ENOMEM;
    card->table[place_of(card, pair->options.number)] = pair;
    card->pairs++;
    pair->card = card;
    return 0;
}

void card_remove(struct card *card, struct queue_pair *pair) {
    uint32_t mask = card->table_size - 1, place = place_of(card, pair->options.number);
    card->table[place] = NULL;
    card->pairs--;
    /* Those behind it may have been put there because its place was taken. */
    for (uint32_t next = (place + 1) & mask; card->table[next]; next = (next + 1) & mask) {
        struct queue_pair *moved = card->table[next];
        card->table[next] = NULL;
        card->table[place_of(card, moved->options.number)] = moved;
    }
}

/* ---- Whose turn it is ---- */

static void resume(struct logical_process *lp, struct card *card) {
    /* Otherwise it asks when it is free. */
    if (!timer_armed(&card->link->departure))
        direction_resume(lp, card->link);
}

static void append_control(struct card *card, struct queue_pair *pair) {
    struct pair_list *list = &card->control[pair->options.priority];
    pair->next_control = NULL;
    *(list->last ? &list->last->next_control : &list->first) = pair;
    list->last = pair;
    pair->on_control = true;
    card->control_ready |= 1u << pair->options.priority;
}

static void append_data(struct card *card, struct queue_pair *pair) {
    struct pair_list *list = &card->data[pair->options.priority];
    pair->next_data = NULL;
    *(list->last ? &list->last->next_data : &list->first) = pair;
    list->last = pair;
    pair->on_data = true;
    card->data_ready |= 1u << pair->options.priority;
}

static struct queue_pair *pop_control(struct card *card, uint32_t priority) {
    struct pair_list *list = &card->control[priority];
    struct queue_pair *pair = list->first;
    list->first = pair->next_control;
    if (!list->first) {
        list->last = NULL;
        card->control_ready &= ~(1u << priority);
    }
    pair->on_control = false;
    return pair;
}

static struct queue_pair *pop_data(struct card *card, uint32_t priority) {
    struct pair_list *list = &card->data[priority];
    struct queue_pair *pair = list->first;
    list->first = pair->next_data;
    if (!list->first) {
        list->last = NULL;
        card->data_ready &= ~(1u << priority);
    }
    pair->on_data = false;
    return pair;
}

void card_wants_control(struct logical_process *lp, struct queue_pair *pair) {
    if (pair->on_control)
        return;
    append_control(pair->card, pair);
    resume(lp, pair->card);
}

void card_wants_data(struct logical_process *lp, struct queue_pair *pair) {
    append_data(pair->card, pair);
    resume(lp, pair->card);
}

void card_forget(struct card *card, struct queue_pair *pair) {
    uint32_t priority = pair->options.priority;
    /* Round the list once, without the pair. */
    if (pair->on_control) {
        struct queue_pair *last = card->control[priority].last, *each;
        do {
            each = pop_control(card, priority);
            if (each != pair)
                append_control(card, each);
        } while (each != last);
    }
    if (pair->on_data) {
        struct queue_pair *last = card->data[priority].last, *each;
        do {
            each = pop_data(card, priority);
            if (each != pair)
                append_data(card, each);
        } while (each != last);
    }
}

static uint32_t largest(uint32_t priorities) {
    return 31 - (uint32_t)__builtin_clz(priorities);
}

/* Without the priorities that are paused. */
static uint32_t may_send(const struct card *card, uint32_t ready) {
    return ready & ~(uint32_t)card->link->paused;
}

static struct packet *next_control(struct logical_process *lp, struct card *card, struct queue_pair **of) {
    while (may_send(card, card->control_ready)) {
        struct queue_pair *pair = *of = pop_control(card, largest(may_send(card, card->control_ready)));
        struct packet *packet = receiver_next(lp, pair);
        if (packet && receiver_wants(pair))
            append_control(card, pair);
        if (packet)
            return packet;
    }
    return NULL;
}

static struct packet *next_data(struct logical_process *lp, struct card *card, struct queue_pair **of) {
    while (may_send(card, card->data_ready)) {
        struct queue_pair *pair = *of = pop_data(card, largest(may_send(card, card->data_ready)));
        struct packet *packet = sender_may(pair) ? sender_next(lp, pair) : NULL;
        if (!packet)
            continue;
        if (pair->sender.pace_ns > lp->now_ns)
            sender_go_on(lp, pair);
        else if (sender_may(pair))
            append_data(card, pair);
        return packet;
    }
    return NULL;
}

struct packet *card_next(struct logical_process *lp, struct card *card) {
    struct queue_pair *pair;
    struct packet *packet = next_control(lp, card, &pair);
    if (!packet && !(packet = next_data(lp, card, &pair)))
        return NULL;
    struct gb_consumer_counts *counts = &pair->consumer->counts;
    card->link->entered_bytes += packet->view.length;
    if (card->link->classes)
        classes_entered(card->link, packet);
    counts->sent_frames++;
    counts->sent_bytes += packet->view.length;
    counts->sent_classes[packet->class_number]++;
    return packet;
}

/* ---- Arrivals ---- */

static bool give(struct logical_process *lp, struct queue_pair *pair, struct packet *packet) {
    struct arrival arrival;
    struct acknowledgement told;
    if (roce_read_data(packet, &arrival)) {
        receiver_take(lp, pair, packet, &arrival);
        return true;
    }
    if (roce_read_acknowledgement(packet, &told))
        sender_acknowledged(lp, pair, &told);
    else if (roce_opcode(packet) == CNP)
        congestion_notified(pair, lp->now_ns);
    else
        return false;
    packet_free(&lp->pool, packet);
    return true;
}

bool card_take(struct logical_process *lp, struct card *card, struct packet *packet) {
    if (card->streams && streams_take(lp, card, packet))
        return true;
    if (!card->consumers || !roce_is(packet))
        return false;
    struct queue_pair *pair = card_pair(card, roce_pair(packet));
    if (pair) {
        struct gb_consumer_counts *counts = &pair->consumer->counts;
        counts->received_frames++;
        counts->received_bytes += packet->view.length;
        counts->received_classes[packet->class_number]++;
        if (!pair->failed && roce_belongs(pair, packet) && give(lp, pair, packet))
            return true;
    }
    card->unknown++;
    packet_free(&lp->pool, packet);
    return true;
}

void card_free(struct card *card) {
    if (card)
        free(card->table);
    free(card);
}
