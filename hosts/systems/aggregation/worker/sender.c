/* Windows, timers and repeated transmissions of a worker (sender.h). */
#include "sender.h"

#include <errno.h>
#include <stdlib.h>

/* ---- What waits ---- */

static struct gb_fragment *fragment_of(struct gb_outstanding_packet *packet) {
    return (struct gb_fragment *)((char *)packet - offsetof(struct gb_fragment, packet));
}

static int32_t index_of(const struct gb_sender *sender, struct gb_outstanding_packet *packet) {
    return (int32_t)(fragment_of(packet) - sender->fragments);
}

/* The first that waits; -1: none does. What was sent once is in the order of fragments. */
static int32_t oldest(const struct gb_sender *sender) {
    struct gb_outstanding_packet *once = sender->outstanding.once.first;
    int32_t least = once ? index_of(sender, once) : -1;
    for (struct gb_outstanding_packet *each = sender->outstanding.again.first; each; each = each->after)
        if (least < 0 || index_of(sender, each) < least)
            least = index_of(sender, each);
    return least;
}

static int by_number(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* ---- Beginning and end ---- */

struct gb_sender *gb_sender_create(int64_t window_fragments, int64_t min_timeout_us, const int32_t *paths,
                                   int64_t path_count, int adapts, int heeds_losses, int64_t span_fragments,
                                   int64_t retries, uint64_t seed) {
    struct gb_sender *sender = calloc(1, sizeof *sender);
    if (!sender)
        return NULL;
    window_open(&sender->window, window_fragments, adapts, heeds_losses);
    trips_open(&sender->round_trips, min_timeout_us);
    sender->maximum_fragments = window_fragments;
    sender->span_fragments = span_fragments;
    sender->retries = retries;
    sender->seed = seed;
    sender->path_count = path_count;
    sender->paths = malloc((size_t)path_count * sizeof *sender->paths);
    /* As nothing is sent twice at a time, no more than the window. */
    sender->transmissions = malloc((size_t)window_fragments * sizeof *sender->transmissions);
    sender->chosen = malloc((size_t)window_fragments * sizeof *sender->chosen);
    if (!sender->paths || !sender->transmissions || !sender->chosen) {
        gb_sender_free(sender);
        return NULL;
    }
    for (int64_t i = 0; i < path_count; i++)
        sender->paths[i] = paths[i];
    return sender;
}

void gb_sender_free(struct gb_sender *sender) {
    free(sender->paths);
    free(sender->transmissions);
    free(sender->chosen);
    free(sender->news);
    free(sender->positions);
    free(sender->fragments);
    free(sender);
}

int gb_sender_begin(struct gb_sender *sender, uint32_t first_number, int64_t count, int64_t now_us) {
    if (count > sender->room) {
        struct gb_fragment *fragments = realloc(sender->fragments, (size_t)count * sizeof *fragments);
        if (!fragments)
            return -ENOMEM;
        sender->fragments = fragments;
        sender->room = count;
    }
    int64_t turn = first_number % sender->path_count;
    for (int64_t i = 0; i < count; i++)
        sender->fragments[i] = (struct gb_fragment){.path = sender->paths[(turn + i) % sender->path_count]};
    sender->first_number = first_number;
    sender->count = count;
    sender->next = 0;
    sender->some_backed_off = false;
    sender->late_below = 0;
    trips_begin(&sender->round_trips, now_us);
    return 0;
}

/* ---- Sending ---- */

/* How many fragments may be sent now that have not been sent before. */
static int64_t sendable(const struct gb_sender *sender) {
    int64_t waiting = sender->outstanding.count;
    /* What is under repair mostly waits for some other worker's packet, not for one of ours on its way (the pipe of
     * RFC 6675): a window that losses have made small goes on. A probe repairs nothing. */
    int64_t flying = sender->round_trips.all_have_begun ? sender->outstanding.once.count : waiting;
    int64_t room = sender->count - sender->next;
    if (room > sender->maximum_fragments - waiting)
        room = sender->maximum_fragments - waiting;
    if (room > window_fragments(&sender->window) - flying)
        room = window_fragments(&sender->window) - flying;
    if (sender->span_fragments && waiting) {
        int64_t span = oldest(sender) + sender->span_fragments - sender->next;
        room = room < span ? room : span;
    }
    return room > 0 ? room : 0;
}

static bool has_backed_off(const struct gb_fragment *fragment) {
    return fragment->timeouts >= GB_CONSTANT_TIMEOUTS;
}

/* Computed anew each time, so that a fresh sample moves the timers that run. */
static int64_t deadline_us(const struct gb_sender *sender, const struct gb_fragment *fragment) {
    int64_t sent_us = fragment->packet.sent_us;
    if (has_backed_off(fragment) && sent_us < sender->probed_us)
        sent_us = sender->probed_us;
    uint32_t number = sender->first_number + (uint32_t)(fragment - sender->fragments);
    int64_t due_us = trips_deadline_us(&sender->round_trips, sent_us, fragment->timeouts,
                                       fragment->packet.state == GB_SENT_AGAIN, sender->outstanding.count);
    return sent_us + randomised_us(due_us - sent_us, sender->seed, number, fragment->timeouts);
}

static void send_again(struct gb_sender *sender, int32_t index, enum gb_attempt attempt, int64_t now_us, int64_t *sent) {
    struct gb_fragment *fragment = &sender->fragments[index];
    fragment->requested = false;
    outstanding_sent_again(&sender->outstanding, &fragment->packet, now_us);
    sender->transmissions[(*sent)++] = (struct gb_transmission){index, attempt};
}

static void repeat(struct gb_sender *sender, int32_t index, int64_t now_us, int64_t *sent) {
    struct gb_fragment *fragment = &sender->fragments[index];
    bool give_up = fragment->repeats >= sender->retries;
    sender->statistics.given_up += give_up;
    fragment->repeats++;
    /* Others have at most their window's maximum out beyond what we have sent, however small our own window is. */
    if (fragment->timeouts)
        sender->late_below = sender->next + sender->maximum_fragments;
    send_again(sender, index, give_up ? GB_RESEND : GB_RETRY, now_us, sent);
}

static int64_t to_resend(struct gb_sender *sender, const struct gb_packet_list *list, int64_t count) {
    for (struct gb_outstanding_packet *each = list->first; each; each = each->after)
        if (each->resend)
            sender->chosen[count++] = index_of(sender, each);
    return count;
}

/* What is lost or asked for. */
static void send_at_once(struct gb_sender *sender, int64_t now_us, int64_t *sent) {
    int64_t count = to_resend(sender, &sender->outstanding.once, 0);
    count = to_resend(sender, &sender->outstanding.again, count);
    qsort(sender->chosen, (size_t)count, sizeof *sender->chosen, by_number);
    for (int64_t i = 0; i < count; i++) {
        int32_t index = sender->chosen[i];
        struct gb_fragment *fragment = &sender->fragments[index];
        if (fragment->requested) {
            sender->statistics.direct_copies++;
            send_again(sender, index, GB_DIRECT, now_us, sent);
        } else {
            sender->statistics.early_resends++;
            window_lost(&sender->window, fragment->packet.order, sender->outstanding.next_order);
            repeat(sender, index, now_us, sent);
        }
    }
}

enum gb_kind { GB_ALL, GB_BACKED_OFF, GB_NOT_BACKED_OFF };

static bool is_of(enum gb_kind kind, const struct gb_fragment *fragment) {
    return kind == GB_ALL || has_backed_off(fragment) == (kind == GB_BACKED_OFF);
}

/* Of a list those whose timers have run out, at most `most`; timers of one kind run out in the list's order. */
static int64_t timed_out(struct gb_sender *sender, const struct gb_packet_list *list, enum gb_kind kind, int64_t most,
                         int64_t now_us, int64_t count) {
    for (struct gb_outstanding_packet *each = list->first; each && most; each = each->after) {
        const struct gb_fragment *fragment = fragment_of(each);
        if (!is_of(kind, fragment))
            continue;
        if (deadline_us(sender, fragment) > now_us)
            break;
        sender->chosen[count++] = index_of(sender, each);
        most--;
    }
    return count;
}

static void send_timed_out(struct gb_sender *sender, int64_t now_us, int64_t *sent) {
    int64_t count = 0;
    if (!sender->round_trips.all_have_begun) {
        int32_t first = oldest(sender);
        if (first >= 0 && deadline_us(sender, &sender->fragments[first]) <= now_us)
            sender->chosen[count++] = first;
    } else {
        count = timed_out(sender, &sender->outstanding.once, GB_ALL, INT64_MAX, now_us, count);
        count = timed_out(sender, &sender->outstanding.again, sender->some_backed_off ? GB_NOT_BACKED_OFF : GB_ALL,
                          INT64_MAX, now_us, count);
        /* Of those that have backed off the timer of one runs, which was sent longest ago. */
        if (sender->some_backed_off)
            count = timed_out(sender, &sender->outstanding.again, GB_BACKED_OFF, 1, now_us, count);
    }
    qsort(sender->chosen, (size_t)count, sizeof *sender->chosen, by_number);
    for (int64_t i = 0; i < count; i++) {
        struct gb_fragment *fragment = &sender->fragments[sender->chosen[i]];
        sender->statistics.timeout_resends++;
        if (sender->round_trips.all_have_begun)
            window_lost(&sender->window, fragment->packet.order, sender->outstanding.next_order);
        if (has_backed_off(fragment))
            sender->probed_us = now_us;
        fragment->timeouts++;
        sender->some_backed_off |= has_backed_off(fragment);
        repeat(sender, sender->chosen[i], now_us, sent);
    }
}

static enum gb_attempt first_attempt(struct gb_sender *sender, int64_t index) {
    if (sender->fragments[index].requested_ahead) {
        sender->statistics.direct_copies++;
        return GB_DIRECT;
    }
    return index < sender->late_below ? GB_LATE : GB_FIRST;
}

int64_t gb_sender_transmissions(struct gb_sender *sender, int64_t now_us) {
    int64_t sent = 0;
    if (sender->outstanding.resends)
        send_at_once(sender, now_us, &sent);
    send_timed_out(sender, now_us, &sent);
    for (int64_t left = sendable(sender); left; left--) {
        int32_t index = (int32_t)sender->next++;
        outstanding_sent(&sender->outstanding, &sender->fragments[index].packet, now_us);
        sender->transmissions[sent++] = (struct gb_transmission){index, first_attempt(sender, index)};
    }
    return sent;
}

static int64_t sooner_us(const struct gb_sender *sender, const struct gb_packet_list *list, enum gb_kind kind,
                         int64_t least_us) {
    for (struct gb_outstanding_packet *each = list->first; each; each = each->after) {
        if (!is_of(kind, fragment_of(each)))
            continue;
        int64_t due_us = deadline_us(sender, fragment_of(each));
        return least_us < 0 || due_us < least_us ? due_us : least_us;
    }
    return least_us;
}

int64_t gb_sender_deadline_us(struct gb_sender *sender) {
    const struct gb_outstanding *outstanding = &sender->outstanding;
    if (outstanding->resends || sendable(sender))
        return 0;
    if (!sender->round_trips.all_have_begun) {
        int32_t first = oldest(sender);
        return first < 0 ? -1 : deadline_us(sender, &sender->fragments[first]);
    }
    int64_t due_us = sooner_us(sender, &outstanding->once, GB_ALL, -1);
    if (!sender->some_backed_off)
        return sooner_us(sender, &outstanding->again, GB_ALL, due_us);
    due_us = sooner_us(sender, &outstanding->again, GB_NOT_BACKED_OFF, due_us);
    return sooner_us(sender, &outstanding->again, GB_BACKED_OFF, due_us);
}

/* ---- ACKs ---- */

/* The place of the transmission to which an ACK that is due to a repeated packet came. One that came sooner than any round
 * trip cannot be due to the latest transmission. */
static int64_t order_that_came(const struct gb_sender *sender, const struct gb_fragment *fragment, int64_t now_us) {
    int64_t least_us = sender->round_trips.least_of_all_us;
    bool latest = least_us >= 0 && now_us - fragment->packet.sent_us >= least_us;
    return latest ? fragment->packet.order : fragment->packet.first_order;
}

/* How many of a list wait on a path, sent before the transmission with place `before`. */
static int64_t waiting_on(const struct gb_packet_list *list, int32_t path, int64_t before) {
    int64_t count = 0;
    for (struct gb_outstanding_packet *each = list->first; each && each->order < before; each = each->after)
        count += fragment_of(each)->path == path;
    return count;
}

static void overtake(struct gb_sender *sender, const struct gb_packet_list *list, int32_t path, int64_t order, bool all) {
    for (struct gb_outstanding_packet *each = list->first; each && each->order < order; each = each->after) {
        if (fragment_of(each)->path != path)
            continue;
        outstanding_overtaken(&sender->outstanding, each);
        if (all)
            outstanding_resend(&sender->outstanding, each);
    }
}

/* A transmission with place `order` has got through: counts that for those sent before it on its path. */
static void note_overtaken(struct gb_sender *sender, int32_t path, int64_t order) {
    const struct gb_packet_list *once = &sender->outstanding.once, *again = &sender->outstanding.again;
    int64_t overtaken = waiting_on(once, path, order) + waiting_on(again, path, order);
    if (!overtaken)
        return;
    /* Nothing will be sent whose ACK could tell more. */
    bool stuck = sender->outstanding.count <= GB_LOST_AFTER && !sendable(sender);
    bool all = (stuck || sender->next == sender->count) &&
               overtaken == waiting_on(once, path, INT64_MAX) + waiting_on(again, path, INT64_MAX);
    overtake(sender, once, path, order, all);
    overtake(sender, again, path, order, all);
}

/* Probes say nothing about losses. */
static void forget_probes(struct gb_sender *sender) {
    for (int64_t i = 0; i < sender->next; i++)
        sender->fragments[i].timeouts = sender->fragments[i].repeats = 0;
}

static void take_news(struct gb_sender *sender, int32_t index, bool after_resend, bool congested, bool limiting,
                      int64_t now_us) {
    struct gb_fragment *fragment = &sender->fragments[index];
    fragment->acknowledged = true;
    fragment->requested = false;
    outstanding_remove(&sender->outstanding, &fragment->packet);
    window_acknowledged(&sender->window, fragment->packet.first_order, sender->outstanding.next_order, congested,
                        limiting);
    if (!sender->round_trips.all_have_begun)
        forget_probes(sender);
    trips_acknowledged(&sender->round_trips, fragment->packet.first_sent_us, now_us, after_resend);
    int64_t order = after_resend ? order_that_came(sender, fragment, now_us) : fragment->packet.first_order;
    note_overtaken(sender, fragment->path, order);
}

static bool make_room(struct gb_sender *sender, int64_t batch) {
    if (batch <= sender->batch)
        return true;
    int32_t *news = realloc(sender->news, (size_t)batch * sizeof *news);
    sender->news = news ? news : sender->news;
    int32_t *positions = realloc(sender->positions, (size_t)batch * sizeof *positions);
    sender->positions = positions ? positions : sender->positions;
    if (!news || !positions)
        return false;
    sender->batch = batch;
    return true;
}

int64_t gb_sender_acknowledge(struct gb_sender *sender, const uint32_t *numbers, const uint8_t *after_resends,
                              const uint8_t *congested, int64_t count, int64_t now_us) {
    if (!make_room(sender, count))
        return -ENOMEM;
    bool limiting = sender->next < sender->count;
    int64_t news = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t index = numbers[i] - sender->first_number;
        if (index >= sender->next) {
            sender->statistics.stale_acks++;
        } else if (sender->fragments[index].acknowledged) {
            sender->statistics.duplicate_acks++;
        } else {
            take_news(sender, (int32_t)index, after_resends[i], congested[i], limiting, now_us);
            sender->positions[news] = (int32_t)i;
            sender->news[news++] = (int32_t)index;
        }
    }
    if (news && sender->some_backed_off) {
        sender->some_backed_off = false;
        for (struct gb_outstanding_packet *each = sender->outstanding.again.first; each; each = each->after)
            if (has_backed_off(fragment_of(each)))
                fragment_of(each)->timeouts = GB_CONSTANT_TIMEOUTS - 1;
    }
    return news;
}

void gb_sender_request(struct gb_sender *sender, uint32_t number) {
    uint32_t index = number - sender->first_number;
    if (index >= sender->count || sender->fragments[index].acknowledged) {
        sender->statistics.stale_requests++;
        return;
    }
    struct gb_fragment *fragment = &sender->fragments[index];
    if (index < sender->next) {
        fragment->requested = true;
        outstanding_resend(&sender->outstanding, &fragment->packet);
    } else {
        fragment->requested_ahead = true;
    }
}
