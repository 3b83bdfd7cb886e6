/* SPDX-License-Identifier: MIT */
#include "tests/plugins/fake.h"

#include <stdio.h>

#include "core/text.h"
#include "tests/harness/test.h"

static const struct fake_job *fake_of(const struct weir_job *job)
{
    return (const void *)job;
}

static struct weir_slice fake_id(const struct weir_job *job)
{
    return weir__slice_str(fake_of(job)->id);
}

static struct weir_slice fake_topic(const struct weir_job *job)
{
    (void)job;
    return weir__slice_str("mail");
}

static struct weir_slice fake_group(const struct weir_job *job)
{
    const char *group = fake_of(job)->group;

    return weir__slice_str(group == NULL ? "" : group);
}

static void fake_counters(const struct weir_job *job,
                          struct weir_counters *ret_counters)
{
    *ret_counters = fake_of(job)->counters;
}

static int64_t fake_lateness(const struct weir_job *job)
{
    return fake_of(job)->late_us;
}

static size_t fake_json(const struct weir_job *job, char *buf, size_t cap)
{
    if (fake_of(job)->is_out_of_memory)
        return 0;
    return (size_t)snprintf(buf, cap, "%s", fake_of(job)->body);
}

static void fake_set_delay(struct weir_job *job, int64_t delay_ms)
{
    ((struct fake_job *)(void *)job)->delay_ms = delay_ms;
}

static void fake_set_reason(struct weir_job *job, const char *text)
{
    struct fake_job *fake = (void *)job;

    (void)snprintf(fake->reason, sizeof(fake->reason), "%s",
                   text == NULL ? "" : text);
}

static char logged[256];

static void fake_log(const struct weir_job *job, enum weir_level level,
                     const char *text)
{
    (void)job;
    (void)level;
    (void)snprintf(logged, sizeof(logged), "%s", text);
}

const char *last_logged(void)
{
    return logged;
}

static const struct weir_host fake_host = {
    .size = sizeof(fake_host),
    .job_id = fake_id,
    .job_topic = fake_topic,
    .job_group = fake_group,
    .job_counters = fake_counters,
    .job_lateness_us = fake_lateness,
    .job_body_json = fake_json,
    .job_set_delay = fake_set_delay,
    .job_set_reason = fake_set_reason,
    .job_log = fake_log,
};

struct fake_job job_of(const char *id, const char *body)
{
    return (struct fake_job){.job = {&fake_host},
                             .id = id,
                             .body = body,
                             .counters = {.attempt = 1},
                             .delay_ms = -1};
}

void bind_plugin(struct bound *bound, const char *name,
                 const char *const options[3])
{
    struct weir__instance_options with = {
        .topic = "mail", .options = options, .host = &fake_host};
    char path[512];

    while (with.option_count < 3 && options[with.option_count] != NULL)
        with.option_count++;
    *bound = (struct bound){.rc = 0};
    (void)snprintf(path, sizeof(path), "%s/%s.so", WEIR_TEST_PLUGINS, name);
    bound->rc = weir__plugin_load(path, &bound->file, &bound->err);
    EXPECT_STR("", bound->err.text);
    bound->rc =
        weir__instance_open(&bound->file, &with, &bound->instance, &bound->err);
}

enum weir_verdict run(struct bound *bound, struct fake_job *fake)
{
    return bound->file.copy.run(bound->instance.self, &fake->job);
}

int flush(struct bound *bound)
{
    return bound->file.copy.flush(bound->instance.self);
}
