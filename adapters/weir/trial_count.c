/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <weir/test.h>

struct wanted {
    const char *name;
    uint64_t value;
};

static void on_counter(const char *name, uint64_t value, void *arg)
{
    struct wanted *wanted = arg;

    if (name != NULL && strcmp(name, wanted->name) == 0)
        wanted->value = value;
}

uint64_t weir_trial_counter(const struct weir_trial *trial, const char *name)
{
    struct wanted wanted = {.name = name};

    weir_trial_each_counter(trial, on_counter, &wanted);
    return wanted.value;
}
