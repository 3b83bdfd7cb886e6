/* SPDX-License-Identifier: MIT */

/* For tests: every job "N" is done and adds a-N, b-N and c-N to a topic, each
 * with the key that its id begins with. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

enum { TO };

static const struct weir_option options[] = {
    [TO] = {.name = "to",
            .type = WEIR_OPTION_TEXT,
            .help = "The topic, which may be that of the job."},
};

static int open_follows(const struct weir_open *open_args, void **ret_self)
{
    char *topic = strdup(open_args->values[TO].text);

    if (topic == NULL)
        return WEIR_ENOMEM;
    *ret_self = topic;
    return 0;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct weir_slice own = weir_job_id(job);

    if (memchr(own.ptr, '-', own.len) != NULL)
        return WEIR_DONE; /* it is one of those */
    for (size_t i = 0; i < 3; i++) {
        char id[160];
        struct weir_follow follow = {.id = id, .key = keys[i]};

        (void)snprintf(id, sizeof(id), "%s-%.*s", keys[i], (int)own.len,
                       (const char *)own.ptr);
        if (weir_job_follow_to(job, self, &follow) != WEIR_OK)
            return weir_fail(job, "no job follows");
    }
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "follows",
    .summary = "Adds jobs of three keys for each, for tests.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_follows,
    .run = run,
    .close = free,
};
