/* Windows, timers and repeated transmissions of a worker (sender.h). */
#include "sender.h"

#include <errno.h>
#include <stdlib.h>

/* ---- What waits ---- */

static struct gb_waiting *queue_of(struct gb_sender *sender, const struct gb_fragment *fragment) {
    return fragment->queue == GB_SENT_ONCE ? &sender->once : &sender->again;
}

static void append(struct gb_sender *sender, int32_t index, enum gb_queue queue) {
    struct gb_fragment *fragment = &sender->fragments[index];
    fragment->queue = (uint8_t)queue;
    struct gb_waiting *waiting = queue_of(sender, fragment);
    fragment->before = waiting->last;
    fragment->after = -1;
    if (waiting->last < 0)
        waiting->first = index;
    else
        sender->fragments[waiting->last].after = index;
    waiting->last = index;
    waiting->count++;
    sender->unacknowledged++;
}

/* Takes it out of all that waits. */
static void forget(struct gb_sender *sender, int32_t index) {
    struct gb_fragment *fragment = &sender->fragments[index];
    sender->marked -= fragment->marked;
    fragment->marked = fragment->requested = false;
    if (fragment->queue == GB_NOT_WAITING)
        return;
    struct gb_waiting *waiting = queue_of(sender, fragment);
    if (fragment->before < 0)
        waiting->first = fragment->after;
    else
        sender->fragments[fragment->before].after = fragment->after;
    if (fragment->after < 0)
        waiting->last = fragment->before;
    else
        sender->fragments[fragment->after].before = fragment->before;
    waiting->count--;
    sender->unacknowledged--;
    fragment->queue = GB_NOT_WAITING;
}

static void mark(struct gb_sender *sender, struct gb_fragment *fragment) {
    sender->marked += !fragment->marked;
    fragment->marked = true;
}

/* The first that waits; -1: none does. What was sent once is in the order of fragments. */
static int32_t oldest(const struct gb_sender *sender) {
    int32_t least = sender->once.first;
    for (int32_t i = sender->again.first; i >= 0; i = sender->fragments[i].after)
        if (least < 0 || i < least)
            least = i;
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
    sender->once = sender->again = (struct gb_waiting){.first = -1, .last = -1};
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
    int64_t waiting = sender->unacknowledged;
    /* What is under repair mostly waits for some other worker's packet, not for one of ours on its way (the pipe of
     * RFC 6675): a window that losses have made small goes on. A probe repairs nothing. */
    int64_t flying = sender->round_trips.all_have_begun ? sender->once.count : waiting;
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
    int64_t sent_us = fragment->sent_us;
    if (has_backed_off(fragment) && sent_us < sender->probed_us)
        sent_us = sender->probed_us;
    uint32_t number = sender->first_number + (uint32_t)(fragment - sender->fragments);
    int64_t due_us = trips_deadline_us(&sender->round_trips, sent_us, fragment->timeouts,
                                       fragment->queue == GB_SENT_AGAIN, sender->unacknowledged);
    return sent_us + randomised_us(due_us - sent_us, sender->seed, number, fragment->timeouts);
}

static void send_again(struct gb_sender *sender, int32_t index, enum gb_attempt attempt, int64_t now_us, int64_t *sent) {
    struct gb_fragment *fragment = &sender->fragments[index];
    forget(sender, index);
    append(sender, index, GB_SENT_AGAIN);
    fragment->order = sender->next_order++;
    fragment->sent_us = now_us;
    fragment->later_acks = 0;
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

static void send_marked(struct gb_sender *sender, int64_t now_us, int64_t *sent) {
    int64_t count = 0;
    for (int32_t i = sender->once.first; i >= 0; i = sender->fragments[i].after)
        if (sender->fragments[i].marked)
            sender->chosen[count++] = i;
    for (int32_t i = sender->again.first; i >= 0; i = sender->fragments[i].after)
        if (sender->fragments[i].marked)
            sender->chosen[count++] = i;
    qsort(sender->chosen, (size_t)count, sizeof *sender->chosen, by_number);
    for (int64_t i = 0; i < count; i++) {
        int32_t index = sender->chosen[i];
        struct gb_fragment *fragment = &sender->fragments[index];
        if (fragment->requested) {
            sender->statistics.direct_copies++;
            send_again(sender, index, GB_DIRECT, now_us, sent);
        } else {
            sender->statistics.early_resends++;
            window_lost(&sender->window, fragment->order, sender->next_order);
            repeat(sender, index, now_us, sent);
        }
    }
}

enum gb_kind { GB_ALL, GB_BACKED_OFF, GB_NOT_BACKED_OFF };

static bool is_of(enum gb_kind kind, const struct gb_fragment *fragment) {
    return kind == GB_ALL || has_backed_off(fragment) == (kind == GB_BACKED_OFF);
}

/* Of a queue those whose timers have run out, at most `most`; timers of one kind run out in the queue's order. */
static int64_t timed_out(struct gb_sender *sender, const struct gb_waiting *waiting, enum gb_kind kind, int64_t most,
                         int64_t now_us, int64_t count) {
    for (int32_t i = waiting->first; i >= 0 && most; i = sender->fragments[i].after) {
        const struct gb_fragment *fragment = &sender->fragments[i];
        if (!is_of(kind, fragment))
            continue;
        if (deadline_us(sender, fragment) > now_us)
            break;
        sender->chosen[count++] = i;
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
        count = timed_out(sender, &sender->once, GB_ALL, INT64_MAX, now_us, count);
        count = timed_out(sender, &sender->again, sender->some_backed_off ? GB_NOT_BACKED_OFF : GB_ALL, INT64_MAX, now_us,
                          count);
        /* Of those that have backed off the timer of one runs, which was sent longest ago. */
        if (sender->some_backed_off)
            count = timed_out(sender, &sender->again, GB_BACKED_OFF, 1, now_us, count);
    }
    qsort(sender->chosen, (size_t)count, sizeof *sender->chosen, by_number);
    for (int64_t i = 0; i < count; i++) {
        struct gb_fragment *fragment = &sender->fragments[sender->chosen[i]];
        sender->statistics.timeout_resends++;
        if (sender->round_trips.all_have_begun)
            window_lost(&sender->window, fragment->order, sender->next_order);
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
    if (sender->marked)
        send_marked(sender, now_us, &sent);
    send_timed_out(sender, now_us, &sent);
    for (int64_t left = sendable(sender); left; left--) {
        int32_t index = (int32_t)sender->next++;
        struct gb_fragment *fragment = &sender->fragments[index];
        append(sender, index, GB_SENT_ONCE);
        fragment->first_order = fragment->order = sender->next_order++;
        fragment->first_sent_us = fragment->sent_us = now_us;
        sender->transmissions[sent++] = (struct gb_transmission){index, first_attempt(sender, index)};
    }
    return sent;
}

static int64_t sooner_us(const struct gb_sender *sender, const struct gb_waiting *waiting, enum gb_kind kind,
                         int64_t least_us) {
    for (int32_t i = waiting->first; i >= 0; i = sender->fragments[i].after) {
        if (!is_of(kind, &sender->fragments[i]))
            continue;
        int64_t due_us = deadline_us(sender, &sender->fragments[i]);
        return least_us < 0 || due_us < least_us ? due_us : least_us;
    }
    return least_us;
}

int64_t gb_sender_deadline_us(struct gb_sender *sender) {
    if (sender->marked || sendable(sender))
        return 0;
    if (!sender->round_trips.all_have_begun) {
        int32_t first = oldest(sender);
        return first < 0 ? -1 : deadline_us(sender, &sender->fragments[first]);
    }
    int64_t due_us = sooner_us(sender, &sender->once, GB_ALL, -1);
    if (!sender->some_backed_off)
        return sooner_us(sender, &sender->again, GB_ALL, due_us);
    due_us = sooner_us(sender, &sender->again, GB_NOT_BACKED_OFF, due_us);
    return sooner_us(sender, &sender->again, GB_BACKED_OFF, due_us);
}

/* ---- ACKs ---- */

/* The place of the transmission to which an ACK that is due to a repeated packet came. One that came sooner than any round
 * trip cannot be due to the latest transmission. */
static int64_t order_that_came(const struct gb_sender *sender, const struct gb_fragment *fragment, int64_t now_us) {
    int64_t least_us = sender->round_trips.least_of_all_us;
    bool latest = least_us >= 0 && now_us - fragment->sent_us >= least_us;
    return latest ? fragment->order : fragment->first_order;
}

/* How many wait on a path, sent before the transmission with place `before`. */
static int64_t waiting_on(const struct gb_sender *sender, int32_t path, int64_t before) {
    int64_t count = 0;
    for (int32_t i = sender->once.first; i >= 0 && sender->fragments[i].order < before; i = sender->fragments[i].after)
        count += sender->fragments[i].path == path;
    for (int32_t i = sender->again.first; i >= 0 && sender->fragments[i].order < before; i = sender->fragments[i].after)
        count += sender->fragments[i].path == path;
    return count;
}

static void overtake(struct gb_sender *sender, const struct gb_waiting *waiting, int32_t path, int64_t order, bool all) {
    for (int32_t i = waiting->first; i >= 0; i = sender->fragments[i].after) {
        struct gb_fragment *fragment = &sender->fragments[i];
        if (fragment->order >= order)
            break;
        if (fragment->path != path)
            continue;
        fragment->later_acks += fragment->later_acks < GB_EARLY_RESEND_AFTER;
        if (all || fragment->later_acks >= GB_EARLY_RESEND_AFTER)
            mark(sender, fragment);
    }
}

/* A transmission with place `order` has got through: counts that for those sent before it on its path. */
static void note_overtaken(struct gb_sender *sender, int32_t path, int64_t order) {
    int64_t overtaken = waiting_on(sender, path, order);
    if (!overtaken)
        return;
    /* Nothing will be sent whose ACK could tell more. */
    bool stuck = sender->unacknowledged <= GB_EARLY_RESEND_AFTER && !sendable(sender);
    bool all = (stuck || sender->next == sender->count) && overtaken == waiting_on(sender, path, INT64_MAX);
    overtake(sender, &sender->once, path, order, all);
    overtake(sender, &sender->again, path, order, all);
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
    forget(sender, index);
    window_acknowledged(&sender->window, fragment->first_order, sender->next_order, congested, limiting);
    if (!sender->round_trips.all_have_begun)
        forget_probes(sender);
    trips_acknowledged(&sender->round_trips, fragment->first_sent_us, now_us, after_resend);
    int64_t order = after_resend ? order_that_came(sender, fragment, now_us) : fragment->first_order;
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
        for (int32_t i = sender->again.first; i >= 0; i = sender->fragments[i].after)
            if (has_backed_off(&sender->fragments[i]))
                sender->fragments[i].timeouts = GB_CONSTANT_TIMEOUTS - 1;
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
        mark(sender, fragment);
    } else {
        fragment->requested_ahead = true;
    }
}
