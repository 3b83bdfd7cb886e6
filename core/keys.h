/* SPDX-License-Identifier: MIT */
#ifndef WEIR_KEYS_H
#define WEIR_KEYS_H

/* What a job says of its unique key, of the key by which it takes turns, and of
 * its priority. Pure functions. */

#include <weir/weir.h>

enum { WEIR__UNIQUE_MAX = 2048 }; /* bytes of a key */

struct weir__key_rule {
    int64_t hold;       /* ms, or WEIR__UNTIL_... */
    int64_t max_wait;   /* ms; WEIR__OPTION_NONE */
    uint32_t otherwise; /* WEIR__KEY_..., what if the key is held */
};

/* As people write it; NULL: not given. `names` are those of the three, for
 * sentences. */
struct weir__key_texts {
    const char *hold, *otherwise, *max_wait;
    const char *names[3];
};

/* A rule without `hold` (0) gets what is usual. WEIR_EINVAL: such a rule cannot
 * be, and the sentence says why. */
int weir__key_rule_fit(struct weir__key_rule *rule, const char *const names[3],
                       struct weir_error *err);

/* Read it, checked. WEIR_EINVAL. */
int weir__key_rule_read(const struct weir__key_texts *texts,
                        struct weir__key_rule *ret_rule,
                        struct weir_error *err);

/* "urgent", ...; NULL is normal. 0: it is normal, else its level and one
 * (core/record.h). WEIR_EINVAL with a sentence that begins with `name`. */
int weir__priority_read(const char *name, const char *text,
                        uint32_t *ret_priority, struct weir_error *err);

/* NULL: it is normal. */
const char *weir__priority_name(uint32_t priority);

/* Check a key. WEIR_EINVAL with a sentence that begins with `name`. */
int weir__key_check(const char *name, struct weir_slice key,
                    struct weir_error *err);

#endif
