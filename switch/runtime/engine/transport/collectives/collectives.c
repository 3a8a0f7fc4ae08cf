/* Collectives: what of a schedule is complete, and which sends may begin.
 *
 * What arrives is taken in at once. What may be sent because of it is sent once everything of that time has happened,
 * in the order in which it became ready, as an agent would that is notified of it.
 */
#include "engine/transport/collectives/collective.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/transport/pair.h"

enum { FIRST_READY = 8 };

struct collective {
    struct collective *next;
    struct consumer *consumer;
    struct gb_collective options;
    struct gb_schedule schedule;
    struct early_message *early;    /* of steps that still wait for others */
    uint32_t left, changes_left;    /* steps; those that are no sends */
    uint64_t awaited_bytes;         /* of messages that have not come, with a packet's header for each */
    bool reported;                  /* that it has its result, or its owner sees that by itself */
    struct queue_pair **pairs;      /* to each peer; NULL: there is none */
    uint32_t waits[];               /* of each step */
};

/* ---- What waits for others ---- */

static void wants_to_act(struct logical_process *lp, struct consumer *consumer) {
    struct collectives *own = &consumer->collectives;
    if (own->acting || own->held)
        return;
    own->acting = true;
    own->acting_order = timer_number(&lp->timers);
    own->next_acting = NULL;
    if (lp->acting_first)
        lp->acting_last->collectives.next_acting = consumer;
    else
        lp->acting_first = consumer;
    lp->acting_last = consumer;
}

static void push_ready(struct logical_process *lp, struct collective *collective, uint32_t step) {
    struct collectives *own = &collective->consumer->collectives;
    if (own->ready_count == own->ready_capacity) {
        own->ready_capacity = own->ready_capacity ? 2 * own->ready_capacity : FIRST_READY;
        own->ready = realloc(own->ready, own->ready_capacity * sizeof *own->ready);
        if (!own->ready)
            abort();                /* a few kilobytes: whoever waits for it would wait for ever */
    }
    own->ready[own->ready_count++] = (struct ready_send){collective, step};
    wants_to_act(lp, collective->consumer);
}

static void free_message(struct early_message *message) {
    free(message->arrived.data);
    free(message);
}

static struct early_message *keep(const struct arrived *arrived, uint32_t step) {
    struct early_message *message = malloc(sizeof *message);
    if (!message)
        abort();                    /* see above */
    *message = (struct early_message){.arrived = *arrived, .step = step};
    return message;
}

/* ---- The buffer ---- */

static void take_contents(const struct collective *collective, uint32_t step, const void *data) {
    const struct gb_collective *options = &collective->options;
    uint64_t bytes = options->size_bytes[step];
    if (!options->buffer || !data)
        return;
    uint8_t *to = options->buffer + options->offset_bytes[step];
    if (collective->schedule.kinds[step] == GB_STEP_RECEIVE) {
        memcpy(to, data, bytes);
        return;
    }
    const uint32_t *addends = data;
    uint32_t *sums = (uint32_t *)(void *)to;
    for (uint64_t i = 0; i < bytes / sizeof *sums; i++)
        sums[i] += addends[i];
}

static void copy(const struct collective *collective, uint32_t step) {
    const struct gb_collective *options = &collective->options;
    if (options->buffer && options->size_bytes[step])
        memmove(options->buffer + options->offset_bytes[step], options->buffer + options->source_bytes[step],
                options->size_bytes[step]);
}

/* ---- Progress ---- */

static void complete_step(struct logical_process *, struct collective *, uint32_t step);

static struct early_message *take_early(struct collective *collective, uint32_t step) {
    for (struct early_message **at = &collective->early; *at; at = &(*at)->next)
        if ((*at)->step == step) {
            struct early_message *message = *at;
            *at = message->next;
            return message;
        }
    return NULL;
}

/* It waits for nothing any more. */
static void may_begin(struct logical_process *lp, struct collective *collective, uint32_t step) {
    struct early_message *message;
    switch (collective->schedule.kinds[step]) {
    case GB_STEP_SEND:
        push_ready(lp, collective, step);
        break;
    case GB_STEP_COPY:
        copy(collective, step);
        complete_step(lp, collective, step);
        break;
    default:
        if ((message = take_early(collective, step))) {
            take_contents(collective, step, message->arrived.data);
            free_message(message);
            complete_step(lp, collective, step);
        }
    }
}

static void complete_step(struct logical_process *lp, struct collective *collective, uint32_t step) {
    const struct gb_schedule *schedule = &collective->schedule;
    collective->left--;
    if (schedule->kinds[step] != GB_STEP_SEND)
        collective->changes_left--;
    for (uint32_t i = schedule->dependents_from[step]; i < schedule->dependents_from[step + 1]; i++) {
        uint32_t dependent = schedule->dependents[i];
        if (--collective->waits[dependent] == 0)
            may_begin(lp, collective, dependent);
    }
}

static void collective_free(struct collective *collective) {
    while (collective->early) {
        struct early_message *message = collective->early;
        collective->early = message->next;
        free_message(message);
    }
    free(collective->pairs);
    free(collective);
}

static void remove_collective(struct collective *collective) {
    struct collective **at = &collective->consumer->collectives.first;
    while (*at != collective)
        at = &(*at)->next;
    *at = collective->next;
    collective_free(collective);
}

/* Report to its owner what is complete by now. It may be gone afterwards. */
static void report(struct logical_process *lp, struct collective *collective) {
    struct consumer *consumer = collective->consumer;
    uint64_t tag = collective->options.tag;
    if (!collective->reported && !collective->changes_left) {
        collective->reported = true;
        consumer_complete(lp, consumer, GB_COMPLETION_COLLECTIVE, 0, tag, 0, NULL);
    }
    if (!collective->left) {
        consumer_complete(lp, consumer, GB_COMPLETION_COLLECTIVE_ENDED, 0, tag, 0, NULL);
        remove_collective(collective);
    }
}

void collective_sent(struct logical_process *lp, struct collective *collective, uint32_t step) {
    complete_step(lp, collective, step);
    report(lp, collective);
}

/* ---- Arrivals ---- */

static struct collective *find(const struct consumer *consumer, uint64_t tag) {
    struct collective *collective = consumer->collectives.first;
    while (collective && collective->options.tag != tag >> GB_TURN_BITS << GB_TURN_BITS)
        collective = collective->next;
    return collective;
}

/* The peer behind the pair; the number of peers if there is none. */
static uint32_t peer_of(const struct collective *collective, uint32_t pair) {
    const uint32_t *pairs = collective->options.pairs, *by_pair = collective->options.by_pair;
    uint32_t low = 0, high = collective->schedule.peers;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pairs[by_pair[middle]] < pair)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < collective->schedule.peers && pairs[by_pair[low]] == pair;
    return found ? by_pair[low] : collective->schedule.peers;
}

/* What a message is for; the number of steps if nothing like it is expected. */
static uint32_t step_of(const struct collective *collective, const struct arrived *arrived) {
    const struct gb_schedule *schedule = &collective->schedule;
    uint32_t peer = peer_of(collective, arrived->pair), turn = arrived->tag & ((1u << GB_TURN_BITS) - 1);
    if (peer == schedule->peers || turn >= schedule->receives_from[peer + 1] - schedule->receives_from[peer])
        return schedule->steps;
    uint32_t step = schedule->receives[schedule->receives_from[peer] + turn];
    bool fits = collective->options.size_bytes[step] == arrived->size_bytes &&
                (arrived->data || !arrived->size_bytes || !collective->options.buffer);
    return fits ? step : schedule->steps;
}

/* At least. */
static uint64_t wire_bytes(uint64_t size_bytes) {
    return size_bytes + sizeof ((struct queue_pair *)0)->header;
}

static void take(struct logical_process *lp, struct collective *collective, const struct arrived *arrived) {
    uint32_t step = step_of(collective, arrived);
    if (step == collective->schedule.steps) {
        consumer_complete(lp, collective->consumer, GB_COMPLETION_COLLECTIVE_FAILED, arrived->pair, arrived->tag,
                          arrived->size_bytes, NULL);
        free(arrived->data);
        return;
    }
    collective->awaited_bytes -= wire_bytes(arrived->size_bytes);
    if (collective->waits[step]) {
        struct early_message *message = keep(arrived, step);
        message->next = collective->early;
        collective->early = message;
    } else {
        take_contents(collective, step, arrived->data);
        free(arrived->data);
        complete_step(lp, collective, step);
    }
}

void collective_received(struct logical_process *lp, struct consumer *consumer, const struct arrived *arrived) {
    struct collectives *own = &consumer->collectives;
    struct collective *collective = find(consumer, arrived->tag);
    if (collective) {
        take(lp, collective, arrived);
        report(lp, collective);
        return;
    }
    struct early_message *message = keep(arrived, 0);
    *(own->early_end ? own->early_end : &own->early) = message;
    own->early_end = &message->next;
    own->counts.early++;
}

/* What has come of a collective that begins, in order. */
static void take_all_early(struct logical_process *lp, struct collective *collective) {
    struct collectives *own = &collective->consumer->collectives;
    struct early_message **at = &own->early;
    while (*at) {
        struct early_message *message = *at;
        if (message->arrived.tag >> GB_TURN_BITS << GB_TURN_BITS != collective->options.tag) {
            at = &message->next;
            continue;
        }
        *at = message->next;
        own->counts.early--;
        take(lp, collective, &message->arrived);
        free(message);
    }
    own->early_end = own->early ? at : NULL;
}

/* ---- Sending ---- */

static void send_ready(struct logical_process *lp, struct collectives *own, const struct ready_send *ready) {
    const struct collective *collective = ready->collective;
    const struct gb_collective *options = &collective->options;
    uint32_t step = ready->step;
    uint64_t size_bytes = options->size_bytes[step];
    struct message message = {
        .tag = options->tag | collective->schedule.turn[step],
        .size_bytes = size_bytes,
        .data = options->buffer ? options->buffer + options->offset_bytes[step] : NULL,
        .collective = ready->collective,
        .step = step,
    };
    own->counts.messages++;
    own->counts.bytes += size_bytes;
    if (sender_add(lp, collective->pairs[collective->schedule.peer[step]], &message) < 0)
        abort();                    /* see above */
}

static void act(struct logical_process *lp, struct consumer *consumer) {
    struct collectives *own = &consumer->collectives;
    /* To send makes nothing else ready. */
    for (uint32_t i = 0; i < own->ready_count; i++)
        send_ready(lp, own, &own->ready[i]);
    own->ready_count = 0;
}

static struct logical_process *next_acting(const struct gb_engine *engine) {
    struct logical_process *first = NULL;
    for (uint32_t i = 0; i < engine->lp_count; i++) {
        struct logical_process *lp = &engine->lps[i];
        if (lp->acting_first &&
            (!first || lp->acting_first->collectives.acting_order < first->acting_first->collectives.acting_order))
            first = lp;
    }
    return first;
}

uint64_t collectives_order(const struct gb_engine *engine) {
    const struct logical_process *lp = next_acting(engine);
    return lp ? lp->acting_first->collectives.acting_order : UINT64_MAX;
}

uint64_t collectives_own_order(const struct logical_process *lp) {
    return lp->acting_first->collectives.acting_order;
}

static struct consumer *pop_acting(struct logical_process *lp) {
    struct consumer *consumer = lp->acting_first;
    lp->acting_first = consumer->collectives.next_acting;
    consumer->collectives.acting = false;
    return consumer;
}

bool collectives_act(struct gb_engine *engine, uint64_t order) {
    struct logical_process *lp;
    bool acted = false;
    while ((lp = next_acting(engine)) && lp->acting_first->collectives.acting_order < order) {
        lp->now_ns = engine->now_ns;
        lp->clock_ns = engine->clock_ns;
        act(lp, pop_acting(lp));
        acted = true;
    }
    return acted;
}

void collectives_act_next(struct logical_process *lp) {
    act(lp, pop_acting(lp));
}

static void stop_acting(struct logical_process *lp, struct consumer *consumer) {
    struct consumer *each, *others = NULL, *last = NULL;
    for (each = lp->acting_first; each; each = each->collectives.next_acting)
        if (each != consumer) {
            *(last ? &last->collectives.next_acting : &others) = each;
            last = each;
        }
    if (last)
        last->collectives.next_acting = NULL;
    lp->acting_first = others;
    lp->acting_last = last;
    consumer->collectives.acting = false;
}

uint64_t collectives_awaited_bytes(const struct consumer *consumer) {
    uint64_t least = UINT64_MAX;
    for (const struct collective *each = consumer->collectives.first; each; each = each->next)
        if (!each->reported && each->awaited_bytes < least)
            least = each->awaited_bytes;
    return least;
}

/* ---- Life ---- */

void collectives_close(struct logical_process *lp, struct consumer *consumer) {
    struct collectives *own = &consumer->collectives;
    if (own->acting)
        stop_acting(lp, consumer);
    while (own->first)
        remove_collective(own->first);
    while (own->early) {
        struct early_message *message = own->early;
        own->early = message->next;
        free_message(message);
    }
    free(own->ready);
}

static bool find_pairs(struct collective *collective) {
    struct consumer *consumer = collective->consumer;
    for (uint32_t peer = 0; peer < collective->schedule.peers; peer++) {
        uint32_t number = collective->options.pairs[peer];
        struct queue_pair *pair = number ? nic_pair(consumer->nic, number) : NULL;
        if (number && (!pair || pair->consumer != consumer || !pair->options.for_collectives))
            return false;
        collective->pairs[peer] = pair;
    }
    return true;
}

static int create(struct consumer *consumer, const struct gb_collective *options, struct collective **created) {
    const struct gb_schedule *schedule = options->schedule;
    struct collective *collective = calloc(1, sizeof *collective + schedule->steps * sizeof *collective->waits);
    if (!collective)
        return -ENOMEM;
    *collective = (struct collective){.consumer = consumer, .options = *options, .schedule = *schedule};
    collective->pairs = calloc(schedule->peers + 1, sizeof *collective->pairs);
    int outcome = !collective->pairs ? -ENOMEM : find_pairs(collective) ? 0 : -ENOENT;
    if (outcome < 0) {
        collective_free(collective);
        return outcome;
    }
    memcpy(collective->waits, schedule->waits, schedule->steps * sizeof *collective->waits);
    collective->left = schedule->steps;
    for (uint32_t step = 0; step < schedule->steps; step++) {
        collective->changes_left += schedule->kinds[step] != GB_STEP_SEND;
        if (schedule->kinds[step] == GB_STEP_RECEIVE || schedule->kinds[step] == GB_STEP_ADD)
            collective->awaited_bytes += wire_bytes(options->size_bytes[step]);
    }
    *created = collective;
    return 0;
}

/* What its owner sees when it begins is not reported. */
static int begin(struct logical_process *lp, struct consumer *consumer, const struct gb_collective *options) {
    struct collective *collective;
    int outcome = create(consumer, options, &collective);
    if (outcome < 0)
        return outcome;
    struct collectives *own = &consumer->collectives;
    bool acting = own->acting;
    own->acting = true;             /* what is ready now is sent at once */
    collective->next = own->first;
    own->first = collective;
    for (uint32_t step = 0; step < collective->schedule.steps; step++)
        if (collective->schedule.waits[step] == 0)
            may_begin(lp, collective, step);
    take_all_early(lp, collective);
    bool has_result = !collective->changes_left;
    collective->reported = has_result;
    report(lp, collective);
    own->acting = acting;
    if (!own->held)
        act(lp, consumer);
    return has_result;
}

int gb_engine_begin_collective(struct gb_engine *engine, uint32_t number, const struct gb_collective *options) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer && !(options->tag & ((1u << GB_TURN_BITS) - 1)) && !find(consumer, options->tag)) {
        engine_catch_up(engine);
        outcome = begin(consumer->nic->port->lp, consumer, options);
        engine_wake(engine);
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_hold_collectives(struct gb_engine *engine, uint32_t number, uint32_t held) {
    engine_lock_control(&engine->lock);
    struct consumer *consumer = consumer_of(engine, number);
    if (consumer) {
        struct logical_process *lp = consumer->nic->port->lp;
        struct collectives *own = &consumer->collectives;
        if (held && own->acting)
            stop_acting(lp, consumer);
        own->held = held;
        if (!held && own->ready_count) {
            engine_catch_up(engine);
            wants_to_act(lp, consumer);
            engine_wake(engine);
        }
    }
    engine_unlock(&engine->lock);
    return consumer ? 0 : -EINVAL;
}

int gb_engine_collective_counts(struct gb_engine *engine, uint32_t number, struct gb_collective_counts *counts) {
    engine_lock_control(&engine->lock);
    const struct consumer *consumer = consumer_of(engine, number);
    if (consumer)
        *counts = consumer->collectives.counts;
    engine_unlock(&engine->lock);
    return consumer ? 0 : -EINVAL;
}
