/* What an instrumented program reports about its packets, as records of 64-bit words.
 *
 * A record is a head, (site << 32 | kind << 24 | number of words that follow), and those words. A site is a point of
 * the program; the code generator keeps the list of them (switch/codegen/emit/probes.py). A recorder is in use by one thread at
 * most: the one that drives an engine with a manual clock, or a data plane (gb_engine_record). Whoever reads it meanwhile
 * holds the engine's lock.
 *
 *   BEGIN     pass, pass it comes from, packet, instance type [, state]
 *   END       packet [, state, frame]                                    of a parser, control or deparser
 *   STEP      offset [, changes]                                         offset: bytes that the parser has taken
 *   TABLE     hit, entry, key words [, changes]
 *   ACCESS    kind of array, number of array, index [, cell]             before it happens
 *   CELL      cell words                                                 of that access, after it happened
 *   ENTRY     number of table, entry                                     answer to gb_trace_list_entries
 *
 * What is in brackets comes with GB_TRACE_VALUES alone. state: standard metadata, requests, then the PHV. frame: its
 * bytes, with their number in front. changes: pairs (place, word); places count words of standard metadata, requests and
 * PHV together. Of cells: one word a register cell's word, two words a counter's packets and bytes. entry: handle, priority,
 * member, group, packets, bytes, action, then the words of its arguments, key, mask, and in range tables low and high
 * ends; handle, member, group and action are UINT64_MAX where there is none, and key and mask are zero without a handle.
 */
#ifndef GRADBED_TRACE_H
#define GRADBED_TRACE_H

#include "state/state.h"

enum gb_trace_level { GB_TRACE_POINTS = 1, GB_TRACE_VALUES = 2 };

enum gb_trace_kind {
    GB_TRACE_BEGIN = 1,
    GB_TRACE_END,
    GB_TRACE_STEP,
    GB_TRACE_TABLE,
    GB_TRACE_ACCESS,
    GB_TRACE_CELL,
    GB_TRACE_ENTRY,
};

enum gb_trace_array { GB_TRACE_REGISTER = 0, GB_TRACE_COUNTER = 1, GB_TRACE_METER = 2 };

/* ---- For the reader ---- */

struct gb_recorder;

/* NULL without memory. */
struct gb_recorder *gb_recorder_open(enum gb_trace_level);
void gb_recorder_close(struct gb_recorder *);
/* Record what this thread's packets do from now on; NULL: no more. */
void gb_recorder_use(struct gb_recorder *);
int gb_recorder_used(void);         /* whether this thread has one */
/* The records since the last call of gb_recorder_clear. `lost` is set when memory did not suffice for all of them. */
const uint64_t *gb_recorder_words(const struct gb_recorder *, uint64_t *count, int *lost);
void gb_recorder_clear(struct gb_recorder *);
/* Append an ENTRY for each entry of a table, in order of handles. */
void gb_recorder_list_entries(struct gb_recorder *, struct gb_switch *, uint32_t table);

/* ---- For generated code ---- */

/* pass_word: the word of the PHV, behind those of the program, in which copies of a packet remember where they come from.
 * of_parser: nothing is there yet. */
void gb_trace_begin(struct gb_switch *, struct gb_packet *, uint32_t site, uint32_t pass_word, bool of_parser);
void gb_trace_end(struct gb_switch *, struct gb_packet *, uint32_t site, bool with_frame);
void gb_trace_step(struct gb_switch *, struct gb_packet *, uint32_t site, uint64_t offset);
/* entry is the table's default entry after a miss; call is what will run, NULL for nothing. */
void gb_trace_table(struct gb_switch *, struct gb_packet *, uint32_t site, uint32_t table, const struct gb_entry *,
                    const struct gb_call *, const uint64_t *key);
void gb_trace_access(struct gb_switch *, uint32_t site, enum gb_trace_array, uint32_t number, uint64_t index);
/* After the statement that an access announced. */
void gb_trace_accessed(struct gb_switch *, uint32_t site);

#endif
