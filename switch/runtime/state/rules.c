/* Rules: entries with many different masks, searched together.
 *
 * For each place of four bits (nibble) in the key and each value of it, a bit vector says which rules that value can
 * match; the conjunction over all nibbles of a key leaves the rules that match (Lakshman, Stiliadis, SIGCOMM 1998).
 * Rules lie in order of precedence in blocks of at most 512, a vector each, so that a search ends at the first block
 * with a match, and a change touches one block alone. Of up to 64 rules vectors are one word, so that the tables of
 * many switches fit into the processor's caches. Of a range, vectors know as much as can be told from one
 * nibble: the ends are compared afterwards.
 */
#include <stdlib.h>

#include "state/tables.h"

enum { BLOCK_RULES = 512, BLOCK_WORDS = BLOCK_RULES / 64, NIBBLE_VALUES = 16, CHECK_EVERY = 4, MAX_NIBBLES = 1024 };
/* Looking at so many nibbles takes longer than comparing a rule word by word. */
enum { NIBBLES_A_RULE = 8 };

/* A cache line; parts are what every 64-bit processor has vector registers for. */
typedef uint64_t part __attribute__((vector_size(16)));
typedef struct { part parts[BLOCK_WORDS / 2]; } __attribute__((aligned(64))) vector;

struct gb_rule_block {
    uint32_t count;
    uint32_t words;                         /* of a vector: BLOCK_WORDS, or 1 in a table's only block */
    struct gb_entry **entries;              /* by falling precedence; behind the vectors */
    _Alignas(64) uint64_t vectors[];        /* NIBBLE_VALUES for each nibble; bit i: entry i */
};

/* ---- What a rule allows ---- */

static uint64_t nibble_at(const uint64_t *words, const struct gb_nibble *nibble) {
    return words[nibble->word] >> nibble->shift & 0xf;
}

/* For each nibble of the key, a bit for each value that the entry can match. */
static void allowed_values(const struct gb_rules *rules, const struct gb_table_layout *layout,
                           const struct gb_entry *entry, uint16_t *allowed) {
    bool ends_agree = true;
    for (uint32_t i = 0; i < rules->nibble_count; i++) {
        const struct gb_nibble *nibble = &rules->nibbles[i];
        ends_agree |= nibble->begins_field;
        allowed[i] = 0;
        uint64_t low = 0, high = 0xf, value = 0, mask = 0;
        if (nibble->match != GB_RANGE) {
            value = nibble_at(entry->key, nibble);
            mask = nibble_at(entry->tuple->mask, nibble);
        } else if (ends_agree) {
            low = nibble_at(gb_low_ends(layout, entry), nibble);
            high = nibble_at(gb_high_ends(layout, entry), nibble);
            ends_agree = low == high;
        }
        for (uint64_t v = low; v <= high; v++)
            if ((v & mask) == value)
                allowed[i] |= (uint16_t)(1 << v);
    }
}

/* ---- Bits of a vector ---- */

/* The bits from `at` on, moved up by one; `bit` comes in there. */
static void insert_bit(uint64_t *words, uint32_t count, uint32_t at, uint64_t bit) {
    uint64_t below = gb_mask(at % 64);
    for (uint32_t i = count - 1; i > at / 64; i--)
        words[i] = words[i] << 1 | words[i - 1] >> 63;
    uint64_t *word = &words[at / 64];
    *word = (*word & below) | (*word & ~below) << 1 | bit << at % 64;
}

/* Bit `at` goes, those above move down by one. */
static void remove_bit(uint64_t *words, uint32_t count, uint32_t at) {
    uint64_t below = gb_mask(at % 64), *word = &words[at / 64];
    *word = (*word & below) | (*word >> 1 & ~below);
    for (uint32_t i = at / 64; i + 1 < count; i++) {
        words[i] |= words[i + 1] << 63;
        words[i + 1] >>= 1;
    }
}

/* ---- Blocks ---- */

static struct gb_rule_block *block_create(const struct gb_rules *rules, uint32_t words) {
    size_t vectors = (size_t)rules->nibble_count * NIBBLE_VALUES * words, entries = 64 * words;
    size_t size = sizeof(struct gb_rule_block) + vectors * sizeof(uint64_t) + entries * sizeof(struct gb_entry *);
    struct gb_rule_block *block = aligned_alloc(_Alignof(struct gb_rule_block), size);
    if (!block)
        return NULL;
    memset(block, 0, size);
    block->words = words;
    block->entries = (struct gb_entry **)(block->vectors + vectors);
    return block;
}

static uint64_t *vector_words(struct gb_rule_block *block, uint32_t nibble, uint32_t value) {
    return block->vectors + (size_t)(nibble * NIBBLE_VALUES + value) * block->words;
}

/* The same rules, with room for BLOCK_RULES; NULL when out of memory. */
static struct gb_rule_block *block_enlarge(const struct gb_rules *rules, struct gb_rule_block *small) {
    struct gb_rule_block *block = block_create(rules, BLOCK_WORDS);
    if (!block)
        return NULL;
    for (uint32_t n = 0; n < rules->nibble_count; n++)
        for (uint32_t v = 0; v < NIBBLE_VALUES; v++)
            memcpy(vector_words(block, n, v), vector_words(small, n, v), small->words * sizeof(uint64_t));
    memcpy(block->entries, small->entries, small->count * sizeof *small->entries);
    block->count = small->count;
    free(small);
    return block;
}

static void block_insert(const struct gb_rules *rules, const struct gb_table_layout *layout,
                         struct gb_rule_block *block, uint32_t at, struct gb_entry *entry) {
    uint16_t allowed[MAX_NIBBLES];
    allowed_values(rules, layout, entry, allowed);
    for (uint32_t n = 0; n < rules->nibble_count; n++)
        for (uint32_t v = 0; v < NIBBLE_VALUES; v++)
            insert_bit(vector_words(block, n, v), block->words, at, allowed[n] >> v & 1);
    memmove(&block->entries[at + 1], &block->entries[at], (block->count - at) * sizeof(struct gb_entry *));
    block->entries[at] = entry;
    block->count++;
}

static void block_remove(const struct gb_rules *rules, struct gb_rule_block *block, uint32_t at) {
    for (uint32_t n = 0; n < rules->nibble_count; n++)
        for (uint32_t v = 0; v < NIBBLE_VALUES; v++)
            remove_bit(vector_words(block, n, v), block->words, at);
    block->count--;
    memmove(&block->entries[at], &block->entries[at + 1], (block->count - at) * sizeof(struct gb_entry *));
}

/* Move the upper half of a full block to an empty one. */
static void block_halve(const struct gb_rules *rules, struct gb_rule_block *block, struct gb_rule_block *upper) {
    enum { HALF = BLOCK_WORDS / 2 };
    for (uint32_t n = 0; n < rules->nibble_count; n++)
        for (uint32_t v = 0; v < NIBBLE_VALUES; v++) {
            uint64_t *from = vector_words(block, n, v) + HALF;
            memcpy(vector_words(upper, n, v), from, HALF * sizeof *from);
            memset(from, 0, HALF * sizeof *from);
        }
    block->count = upper->count = BLOCK_RULES / 2;
    memcpy(upper->entries, block->entries + block->count, upper->count * sizeof(struct gb_entry *));
}

/* The block where the entry is or belongs: the last one whose first rule does not come after it. */
static uint32_t find_block(const struct gb_rules *rules, const struct gb_entry *entry) {
    uint32_t low = 0, high = rules->block_count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (gb_precedes(entry, rules->blocks[middle]->entries[0]))
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* How many of a block's rules precede the entry. */
static uint32_t find_place(const struct gb_rule_block *block, const struct gb_entry *entry) {
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (gb_precedes(block->entries[middle], entry))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void free_blocks(struct gb_rules *rules) {
    if (rules->blocks != &rules->one_block)
        free(rules->blocks);
}

/* Put an empty block at that place in the order; the first one is small. */
static struct gb_rule_block *insert_block(struct gb_rules *rules, uint32_t at) {
    if (rules->block_count == rules->block_capacity) {
        uint32_t capacity = rules->block_capacity ? 4 * rules->block_capacity : 1;
        struct gb_rule_block **blocks = capacity == 1 ? &rules->one_block : malloc(capacity * sizeof *blocks);
        if (!blocks)
            return NULL;
        if (rules->block_count)
            memcpy(blocks, rules->blocks, rules->block_count * sizeof *blocks);
        free_blocks(rules);
        rules->blocks = blocks;
        rules->block_capacity = capacity;
    }
    struct gb_rule_block *block = block_create(rules, rules->block_count ? BLOCK_WORDS : 1);
    if (block) {
        memmove(&rules->blocks[at + 1], &rules->blocks[at], (rules->block_count - at) * sizeof block);
        rules->blocks[at] = block;
        rules->block_count++;
    }
    return block;
}

static void remove_block(struct gb_rules *rules, uint32_t at) {
    free(rules->blocks[at]);
    rules->block_count--;
    memmove(&rules->blocks[at], &rules->blocks[at + 1],
            (rules->block_count - at) * sizeof(struct gb_rule_block *));
}

/* Move all rules of the next block to this one. */
static void absorb_next(struct gb_rules *rules, const struct gb_table_layout *layout, uint32_t at) {
    struct gb_rule_block *block = rules->blocks[at], *next = rules->blocks[at + 1];
    for (uint32_t i = 0; i < next->count; i++)
        block_insert(rules, layout, block, block->count, next->entries[i]);
    remove_block(rules, at + 1);
}

bool gb_rules_add(struct gb_rules *rules, const struct gb_table_layout *layout, struct gb_entry *entry) {
    if (rules->block_count == 0 && !insert_block(rules, 0))
        return false;
    uint32_t at = find_block(rules, entry);
    if (rules->blocks[at]->words == 1 && rules->blocks[at]->count == 64) {
        struct gb_rule_block *larger = block_enlarge(rules, rules->blocks[at]);
        if (!larger)
            return false;
        rules->blocks[at] = larger;
    }
    if (rules->blocks[at]->count == BLOCK_RULES) {
        struct gb_rule_block *upper = insert_block(rules, at + 1);
        if (!upper)
            return false;
        block_halve(rules, rules->blocks[at], upper);
        at = find_block(rules, entry);
    }
    block_insert(rules, layout, rules->blocks[at], find_place(rules->blocks[at], entry), entry);
    return true;
}

void gb_rules_remove(struct gb_rules *rules, const struct gb_table_layout *layout, struct gb_entry *entry) {
    uint32_t at = find_block(rules, entry);
    struct gb_rule_block *block = rules->blocks[at];
    block_remove(rules, block, find_place(block, entry));
    /* Any two neighbours keep half a block of rules, so blocks are a quarter full on average at the least. */
    if (block->count == 0)
        remove_block(rules, at);
    else if (at + 1 < rules->block_count && block->count + rules->blocks[at + 1]->count <= BLOCK_RULES / 2)
        absorb_next(rules, layout, at);
    else if (at > 0 && block->count + rules->blocks[at - 1]->count <= BLOCK_RULES / 2)
        absorb_next(rules, layout, at - 1);
}

/* ---- Search ---- */

static inline const vector *vector_at(const struct gb_rule_block *block, uint32_t nibble, uint32_t value) {
    return (const vector *)block->vectors + nibble * NIBBLE_VALUES + value;
}

/* Intersect with the vectors of the nibbles from `first` to before `end`; whether something is left. */
static inline bool intersect(vector *match, const struct gb_rule_block *block, const uint8_t *values,
                             uint32_t first, uint32_t end) {
    part a = match->parts[0], b = match->parts[1], c = match->parts[2], d = match->parts[3];
    for (uint32_t n = first; n < end; n++) {
        const vector *with = vector_at(block, n, values[n]);
        a &= with->parts[0];
        b &= with->parts[1];
        c &= with->parts[2];
        d &= with->parts[3];
    }
    *match = (vector){{a, b, c, d}};
    part left = a | b | c | d;
    return left[0] | left[1];
}

/* Which of the block's rules the key matches, as far as vectors can tell. */
static inline bool block_match(vector *match, const struct gb_rule_block *block, const uint8_t *values,
                               uint32_t count) {
    *match = *vector_at(block, 0, values[0]);
    bool left = true;
    for (uint32_t n = 1; n < count && left; n += CHECK_EVERY)
        left = intersect(match, block, values, n, n + CHECK_EVERY < count ? n + CHECK_EVERY : count);
    return left;
}

/* Whether a block has so few rules, for keys so long, that they are better compared one by one. Masks do not say
 * what a range allows. */
static inline bool has_few(const struct gb_rules *rules, const struct gb_rule_block *block,
                           const struct gb_table_layout *layout) {
    return block->count * NIBBLES_A_RULE <= rules->nibble_count && layout->match != GB_RANGE;
}

/* The first rule of a block that matches; NULL if none does. */
static struct gb_entry *first_match(const struct gb_rule_block *block, const uint64_t *key, uint32_t words) {
    for (uint32_t i = 0; i < block->count; i++) {
        struct gb_entry *entry = block->entries[i];
        const uint64_t *mask = entry->tuple->mask;
        uint32_t word = 0;
        while (word < words && (key[word] & mask[word]) == entry->key[word])
            word++;
        if (word == words)
            return entry;
    }
    return NULL;
}

/* Likewise, of a block with one word for each vector, by these. */
static struct gb_entry *first_in_word(const struct gb_rules *rules, const struct gb_rule_block *block,
                                      const struct gb_table_layout *layout, const uint64_t *key) {
    uint64_t left = UINT64_MAX;
    for (uint32_t n = 0; n < rules->nibble_count && left; n++)
        left &= block->vectors[n * NIBBLE_VALUES + nibble_at(key, &rules->nibbles[n])];
    for (; left; left &= left - 1) {
        struct gb_entry *entry = block->entries[__builtin_ctzll(left)];
        if (layout->match != GB_RANGE || gb_in_ranges(layout, entry, key))
            return entry;
    }
    return NULL;
}

struct gb_entry *gb_rules_lookup(const struct gb_rules *rules, const struct gb_table_layout *layout,
                                 const uint64_t *key, struct gb_entry *best) {
    const struct gb_rule_block *only = rules->blocks[0];
    if (rules->block_count == 1 && (only->words == 1 || has_few(rules, only, layout))) {
        struct gb_entry *entry = has_few(rules, only, layout) ? first_match(only, key, layout->key_words)
                                                              : first_in_word(rules, only, layout, key);
        return !entry || (best && gb_precedes(best, entry)) ? best : entry;
    }
    uint8_t values[MAX_NIBBLES];
    for (uint32_t n = 0; n < rules->nibble_count; n++)
        values[n] = (uint8_t)nibble_at(key, &rules->nibbles[n]);
    for (uint32_t b = 0; b < rules->block_count; b++) {
        const struct gb_rule_block *block = rules->blocks[b];
        if (best && !gb_precedes(block->entries[0], best))
            break;
        vector match;
        if (!block_match(&match, block, values, rules->nibble_count))
            continue;
        for (uint32_t word = 0; word < BLOCK_WORDS; word++)
            for (uint64_t bits = match.parts[word / 2][word % 2]; bits; bits &= bits - 1) {
                struct gb_entry *entry = block->entries[word * 64 + (uint32_t)__builtin_ctzll(bits)];
                if (layout->match == GB_RANGE && !gb_in_ranges(layout, entry, key))
                    continue;
                return best && gb_precedes(best, entry) ? best : entry;
            }
    }
    return best;
}

/* ---- Life ---- */

bool gb_rules_open(struct gb_rules *rules, const struct gb_table_layout *layout) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < layout->key_field_count; i++)
        count += (layout->key[i].width_bits + 3) / 4;
    if (count == 0 || count > MAX_NIBBLES)
        return true;
    rules->nibbles = calloc(count, sizeof *rules->nibbles);
    if (!rules->nibbles)
        return false;
    rules->nibble_count = count;
    struct gb_nibble *nibble = rules->nibbles;
    for (uint32_t i = 0, word = 0; i < layout->key_field_count; word += gb_field_words(&layout->key[i++])) {
        uint32_t of_field = (layout->key[i].width_bits + 3) / 4;
        for (uint32_t n = of_field; n-- > 0; nibble++)
            *nibble = (struct gb_nibble){.word = word + n / 16,
                                         .shift = (uint8_t)(n % 16 * 4),
                                         .match = (uint8_t)layout->key[i].match,
                                         .begins_field = n + 1 == of_field};
    }
    return true;
}

void gb_rules_free(struct gb_rules *rules) {
    for (uint32_t i = 0; i < rules->block_count; i++)
        free(rules->blocks[i]);
    free_blocks(rules);
    free(rules->nibbles);
}
