/* Lines that programs log: log_msg, assert, assume. */
#include "generated.h"

void gb_log_text(struct gb_log_line *line, const char *text) {
    while (*text && line->length + 1 < sizeof line->text)
        line->text[line->length++] = *text++;
    line->text[line->length] = 0;
}

void gb_log_number(struct gb_log_line *line, const uint64_t *words, uint32_t count, bool is_signed) {
    line->length += gb_wide_decimal(line->text + line->length, (uint32_t)sizeof line->text - line->length, words, count,
                                    is_signed);
}

void gb_log_send(struct gb_switch *sw, const struct gb_log_line *line) { gb_log(sw, line->text); }

void gb_log(struct gb_switch *sw, const char *line) {
    if (sw->log)
        sw->log(sw, line);
}
