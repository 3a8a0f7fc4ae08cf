/* Action profiles: members are actions with arguments, groups are runs of members that a hash selects from. */
#include <stdlib.h>

#include "state/state.h"

struct gb_profile *gb_profile_create(const struct gb_profile_layout *layout) {
    struct gb_profile *profile = calloc(1, sizeof *profile);
    if (profile)
        profile->layout = layout;
    return profile;
}

static void group_free(struct gb_group *group) {
    free(group->calls);
    free(group->members);
    free(group->watched);
    free(group);
}

static void member_free(struct gb_member *member) {
    free(member->call);
    free(member);
}

void gb_profile_free(struct gb_profile *profile) {
    if (!profile)
        return;
    for (uint32_t i = 0; i < profile->member_count; i++)
        member_free(profile->members[i]);
    for (uint32_t i = 0; i < profile->group_count; i++)
        group_free(profile->groups[i]);
    free(profile->members);
    free(profile->groups);
    free(profile);
}

/* Members and groups begin with their ids, so that one search serves both. Index of the first that is not smaller. */
static uint32_t position(void *const *things, uint32_t count, uint32_t id) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (*(const uint32_t *)things[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *find(void *const *things, uint32_t count, uint32_t id) {
    uint32_t at = position(things, count, id);
    return at < count && *(const uint32_t *)things[at] == id ? things[at] : NULL;
}

static bool insert(void ***things, uint32_t *count, uint32_t *capacity, void *thing) {
    if (*count == *capacity) {
        uint32_t larger = *capacity ? 2 * *capacity : 16;
        void **moved = realloc(*things, larger * sizeof *moved);
        if (!moved)
            return false;
        *things = moved;
        *capacity = larger;
    }
    uint32_t at = position(*things, *count, *(const uint32_t *)thing);
    memmove(*things + at + 1, *things + at, (*count - at) * sizeof **things);
    (*things)[at] = thing;
    (*count)++;
    return true;
}

static void remove_at(void **things, uint32_t *count, uint32_t at) {
    (*count)--;
    memmove(things + at, things + at + 1, (*count - at) * sizeof *things);
}

struct gb_member *gb_profile_member(const struct gb_profile *profile, uint32_t id) {
    return find((void *const *)profile->members, profile->member_count, id);
}

struct gb_group *gb_profile_group(const struct gb_profile *profile, uint32_t id) {
    return find((void *const *)profile->groups, profile->group_count, id);
}

static struct gb_member *member_add(struct gb_profile *profile, uint32_t id) {
    struct gb_member *member = calloc(1, sizeof *member);
    if (!member)
        return NULL;
    member->id = id;
    member->call = calloc(1, sizeof *member->call + profile->layout->data_words * sizeof(uint64_t));
    if (!member->call ||
        !insert((void ***)&profile->members, &profile->member_count, &profile->member_capacity, member)) {
        member_free(member);
        return NULL;
    }
    return member;
}

int gb_profile_member_set(struct gb_profile *profile, uint32_t id, uint32_t action, const uint64_t *data,
                          uint32_t words) {
    struct gb_member *member = gb_profile_member(profile, id);
    if (!member) {
        if (profile->member_count >= profile->layout->max_members)
            return GB_FULL;
        member = member_add(profile, id);
        if (!member)
            return GB_NO_MEMORY;
    }
    /* In place: entries and groups point to this call. */
    member->call->action = action;
    for (uint32_t i = 0; i < profile->layout->data_words; i++)
        member->call->data[i] = i < words ? data[i] : 0;
    return 0;
}

int gb_profile_member_delete(struct gb_profile *profile, uint32_t id) {
    struct gb_member *member = gb_profile_member(profile, id);
    if (!member)
        return GB_NO_SUCH;
    if (member->references)
        return GB_IN_USE;
    uint32_t at = position((void *const *)profile->members, profile->member_count, id);
    remove_at((void **)profile->members, &profile->member_count, at);
    member_free(member);
    return 0;
}

static struct gb_group *group_add(struct gb_profile *profile, uint32_t id) {
    struct gb_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->id = id;
    if (!insert((void ***)&profile->groups, &profile->group_count, &profile->group_capacity, group)) {
        free(group);
        return NULL;
    }
    return group;
}

static void refer(struct gb_profile *profile, const struct gb_group *group, int by) {
    for (uint32_t i = 0; i < group->member_count; i++) {
        struct gb_member *member = gb_profile_member(profile, group->members[i]);
        if (member)
            member->references += (uint32_t)by;
    }
}

static bool is_down(const struct gb_profile *profile, uint32_t port) {
    return profile->ports_down && port < GB_WATCHABLE_PORTS && profile->ports_down[port / 64] >> port % 64 & 1;
}

/* Let the hash choose among the members whose ports are up. calls has room for all. */
static void choose_members(struct gb_profile *profile, struct gb_group *group) {
    group->size = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        const struct gb_member *member = gb_profile_member(profile, group->members[i]);
        if (member && (!group->watched || !is_down(profile, group->watched[i])))
            group->calls[group->size++] = member->call;
    }
}

/* Copy of the ports that members watch; NULL when they watch none, or when out of memory. */
static uint32_t *watched_ports(const uint32_t *watched, uint32_t count, bool *any) {
    *any = false;
    for (uint32_t i = 0; watched && i < count; i++)
        *any |= watched[i] != GB_NO_WATCH;
    uint32_t *copy = *any ? malloc(count * sizeof *copy) : NULL;
    if (copy)
        memcpy(copy, watched, count * sizeof *copy);
    return copy;
}

int gb_profile_group_set(struct gb_profile *profile, uint32_t id, const uint32_t *members, const uint32_t *watched,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!gb_profile_member(profile, members[i]))
            return GB_NO_SUCH;
    bool any_watched;
    struct gb_call **calls = malloc((count ? count : 1) * sizeof *calls);
    uint32_t *ids = malloc((count ? count : 1) * sizeof *ids);
    uint32_t *ports = watched_ports(watched, count, &any_watched);
    bool enough = calls && ids && (ports || !any_watched);
    struct gb_group *group = gb_profile_group(profile, id);
    if (enough && !group)
        group = group_add(profile, id);
    if (!enough || !group) {
        free(calls);
        free(ids);
        free(ports);
        return GB_NO_MEMORY;
    }
    if (count)
        memcpy(ids, members, count * sizeof *ids);
    refer(profile, group, -1);
    free(group->calls);
    free(group->members);
    free(group->watched);
    group->calls = calls;
    group->members = ids;
    group->watched = ports;
    group->member_count = count;
    refer(profile, group, 1);
    choose_members(profile, group);
    return 0;
}

int gb_profile_group_delete(struct gb_profile *profile, uint32_t id) {
    struct gb_group *group = gb_profile_group(profile, id);
    if (!group)
        return GB_NO_SUCH;
    if (group->references)
        return GB_IN_USE;
    refer(profile, group, -1);
    uint32_t at = position((void *const *)profile->groups, profile->group_count, id);
    remove_at((void **)profile->groups, &profile->group_count, at);
    group_free(group);
    return 0;
}

void gb_switch_watch_ports(struct gb_switch *sw, const uint64_t *ports_down) {
    for (uint32_t i = 0; i < sw->program->layout->profile_count; i++) {
        struct gb_profile *profile = sw->profiles[i];
        profile->ports_down = ports_down;
        for (uint32_t j = 0; j < profile->group_count; j++)
            if (profile->groups[j]->watched)
                choose_members(profile, profile->groups[j]);
    }
}
