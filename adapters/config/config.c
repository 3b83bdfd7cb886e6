/* SPDX-License-Identifier: MIT */
#include "adapters/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "adapters/config/scan.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

/* Reads the file by its grammar (docs/configuration.md), one token ahead. A
 * mistake in a value is told and reading goes on behind the value; after one in
 * the grammar it goes on in a line on which no more braces are open. */

enum {
    PATH_SHOWN = 64, /* beside it the longest sentence has room */
    DEPTH_MAX = 8
};

struct reader {
    const char *path;
    weir__config_tell_fn tell;
    void *arg;
    int rc; /* of the first mistake */
    struct weir__scan scan;
    int depth; /* braces open */
    int open_line[DEPTH_MAX];
    bool is_lost; /* the grammar was broken: braces may not match any more */
    bool *is_partial; /* of what is read: some of it was passed over */
    struct weir__config *config;
    int redis_line; /* where the section begins; 0: not yet */
    int worker_line;
};

/* The section that is being read. */
struct section {
    const char *name;
    struct weir__config_topic *topic; /* NULL: it is none */
    void *base;                       /* what its options are members of */
};

/* --- mistakes ------------------------------------------------------------ */

/* Line 0: the file as a whole. */
WEIR_PRINTF(4, 5)
static void fail(struct reader *r, int code, int line, const char *format, ...)
{
    struct weir_error whole;
    char sentence[sizeof(whole.text)], place[24] = "";
    size_t len = strlen(r->path);
    size_t skipped = len > PATH_SHOWN ? len - PATH_SHOWN : 0;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args); /* cut */
    va_end(args);
    if (line > 0)
        (void)snprintf(place, sizeof(place), ":%d", line); /* fits */
    (void)weir__error_set(&whole, code, "%s%s%s: %s", skipped > 0 ? "..." : "",
                          r->path + skipped, place, sentence);
    if (r->rc == WEIR_OK)
        r->rc = code;
    if (r->tell != NULL)
        r->tell(whole.text, r->arg);
}

static void no_memory(struct reader *r)
{
    if (r->rc != WEIR_ENOMEM)
        fail(r, WEIR_ENOMEM, 0, "out of memory");
    r->rc = WEIR_ENOMEM;
}

/* --- tokens -------------------------------------------------------------- */

static void advance(struct reader *r)
{
    const struct weir__scan *scan = &r->scan;

    if (scan->token == WEIR__TOKEN_OPEN) {
        if (r->depth < DEPTH_MAX)
            r->open_line[r->depth] = scan->line;
        r->depth++;
    }
    if (scan->token == WEIR__TOKEN_CLOSE && r->depth > 0)
        r->depth--;
    weir__scan_next(&r->scan);
    if (scan->text.failed)
        no_memory(r);
}

static bool is_at(const struct reader *r, enum weir__token token)
{
    return r->scan.token == token;
}

/* To another line, and out of the braces that the mistake's line opens. */
static void pass_over(struct reader *r, int line)
{
    int depth = r->depth;

    *r->is_partial = true;
    while (!is_at(r, WEIR__TOKEN_END) &&
           (r->scan.line == line || r->depth > depth))
        advance(r);
}

static void recover(struct reader *r, int line)
{
    r->is_lost = true;
    pass_over(r, line);
}

/* The line of the innermost brace that is open. */
static int opened_on(const struct reader *r)
{
    return r->open_line[(r->depth < DEPTH_MAX ? r->depth : DEPTH_MAX) - 1];
}

/* The token that is there cannot be. */
static void unexpected(struct reader *r)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    int line = r->scan.line;

    if (is_at(r, WEIR__TOKEN_BAD))
        fail(r, WEIR_EINVAL, line, "%s", r->scan.why.text);
    else if (!is_at(r, WEIR__TOKEN_END))
        fail(
            r, WEIR_EINVAL, line, "%s is not expected here: %s",
            weir__text_quote(weir__slice_str(weir__scan_text(&r->scan)), quote),
            weir__scan_instead(r->scan.token));
    else if (!r->is_lost && r->depth > 0 && r->rc != WEIR_ENOMEM)
        fail(r, WEIR_EINVAL, opened_on(r),
             "the { of this line is not closed: write } where its section or "
             "list ends");
    recover(r, line);
}

/* The name that is there is no section (`section` is NULL) or no option. */
static void unknown(struct reader *r, const char *section)
{
    struct weir_error why;
    int line = r->scan.line;

    (void)weir__config_unknown(section, weir__scan_text(&r->scan), &why);
    fail(r, WEIR_EINVAL, line, "%s", why.text);
    pass_over(r, line);
}

/* On `line` something has to stand behind `name`, and does not. */
static void missing(struct reader *r, int line, const char *what,
                    const char *name, const char *instead)
{
    if (is_at(r, WEIR__TOKEN_BAD)) {
        unexpected(r);
        return;
    }
    fail(r, WEIR_EINVAL, line, "there is no %s behind %s: %s", what, name,
         instead);
    pass_over(r, line);
}

/* --- values -------------------------------------------------------------- */

static char *copy(struct reader *r, const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = weir__mem_new(size);

    if (to == NULL)
        no_memory(r);
    else
        memcpy(to, text, size);
    return to;
}

static void add_item(struct reader *r, struct weir__config_list *list,
                     const char *text)
{
    char *item = copy(r, text);
    char **items = weir__mem_grow(list->items, list->count + 1, sizeof(*items));

    if (items != NULL)
        list->items = items;
    if (item == NULL || items == NULL) {
        weir__mem_free(item);
        no_memory(r);
        return;
    }
    items[list->count++] = item;
}

/* One text of an option of the file's own. */
static void take_own(struct reader *r, const struct weir__option *row,
                     void *holder)
{
    const char *text = weir__scan_text(&r->scan);
    struct weir_error err;
    int64_t value;

    if (weir__option_read(row, text, &value, &err) < 0)
        fail(r, WEIR_EINVAL, r->scan.line, "%s", err.text);
    else if (weir__option_is_number(row))
        ((struct weir__config_number *)holder)->value = value;
    else if (weir__config_is_list(row))
        add_item(r, holder, text);
    else
        ((struct weir__config_text *)holder)->value = copy(r, text);
}

/* One text of a topic's option; of a list, behind those before. */
static void take_said(struct reader *r, struct weir__config_topic *topic,
                      enum weir__topic_option option)
{
    const char *text = weir__scan_text(&r->scan);
    struct weir__config_text *said = &topic->said[option];
    struct weir__buf all = {0};
    struct weir_error err = {0};
    const char *value;

    if (said->value != NULL) {
        weir__buf_append(&all, said->value, strlen(said->value));
        weir__buf_append(&all, " ", 1);
    } else {
        const char *name = weir__topic_options[option].name;

        weir__buf_append(&all, name, strlen(name));
        weir__buf_append(&all, "=", 1);
    }
    weir__buf_append(&all, text, strlen(text) + 1);
    if (all.failed) {
        no_memory(r);
        weir__buf_fini(&all);
        return;
    }
    value = strchr((const char *)all.ptr, '=') + 1;
    if (weir__options_put(&topic->values, topic->name, option, value, &err) <
        0) {
        fail(r, WEIR_EINVAL, r->scan.line, "%s", err.text);
        weir__buf_fini(&all);
        return;
    }
    weir__mem_free(said->value);
    said->value = (char *)all.ptr; /* from now on its own */
}

/* Where an option's value goes. */
struct target {
    const struct weir__option *row;
    int *line; /* the first member of what holds it */
    struct weir__config_topic *topic;
    enum weir__topic_option option; /* WEIR__TOPIC_OPTIONS: the file's own */
    bool is_repeated;               /* then it goes nowhere */
};

static bool find_target(struct reader *r, const struct section *section,
                        struct target *ret_target)
{
    const char *name = weir__scan_text(&r->scan);
    const struct weir__config_option *own = weir__config_options;

    *ret_target =
        (struct target){.topic = section->topic, .option = WEIR__TOPIC_OPTIONS};
    for (; own->section != NULL; own++) {
        if (strcmp(own->section, section->name) != 0 ||
            strcmp(own->row.name, name) != 0)
            continue;
        ret_target->row = &own->row;
        ret_target->line = weir__config_holder(own, section->base);
        return true;
    }
    if (section->topic == NULL)
        return false;
    ret_target->option = weir__topic_option_find(weir__slice_str(name));
    if (ret_target->option == WEIR__TOPIC_OPTIONS)
        return false;
    ret_target->row = &weir__topic_options[ret_target->option];
    ret_target->line = &section->topic->said[ret_target->option].line;
    return true;
}

static void take(struct reader *r, const struct target *target)
{
    if (target->is_repeated) {
        advance(r);
        return;
    }
    if (target->option == WEIR__TOPIC_OPTIONS)
        take_own(r, target->row, target->line);
    else
        take_said(r, target->topic, target->option);
    if (*target->line == 0)
        *target->line = r->scan.line;
    advance(r);
}

/* --- the grammar --------------------------------------------------------- */

/* At the end, or at a section's name behind braces that were lost. */
static bool is_beyond(const struct reader *r)
{
    return is_at(r, WEIR__TOKEN_END) ||
           (r->is_lost && is_at(r, WEIR__TOKEN_TEXT) &&
            weir__config_section(weir__scan_text(&r->scan)) != NULL);
}

/* "{" [ value { "," value } [ "," ] ] "}" */
static void read_list(struct reader *r, const struct target *target)
{
    int depth = r->depth;

    advance(r);
    while (is_at(r, WEIR__TOKEN_TEXT)) {
        take(r, target);
        if (!is_at(r, WEIR__TOKEN_COMMA))
            break;
        advance(r);
    }
    if (is_at(r, WEIR__TOKEN_CLOSE)) {
        advance(r);
        return;
    }
    unexpected(r);
    while (r->depth > depth && !is_beyond(r))
        advance(r);
}

/* A section's name, in a body that began on a line before. */
static bool refuse_unclosed(struct reader *r)
{
    const char *name = weir__scan_text(&r->scan);

    if (weir__config_section(name) == NULL || opened_on(r) == r->scan.line)
        return false;
    fail(r, WEIR_EINVAL, opened_on(r),
         "the { of this line is not closed where %s begins on line %d: write } "
         "before it",
         name, r->scan.line);
    r->is_lost = true;
    *r->is_partial = true;
    return true;
}

/* NAME "=" ( value | list ) */
static void read_option(struct reader *r, const struct section *section)
{
    struct target target;
    int line = r->scan.line;

    if (refuse_unclosed(r))
        return;
    if (!find_target(r, section, &target)) {
        unknown(r, section->name);
        return;
    }
    advance(r);
    if (!is_at(r, WEIR__TOKEN_EQUALS)) {
        missing(r, line, "=", target.row->name, "write NAME = VALUE");
        return;
    }
    advance(r);
    target.is_repeated = *target.line > 0;
    if (target.is_repeated)
        fail(r, WEIR_EINVAL, line,
             "%s was given on line %d already: write it once", target.row->name,
             *target.line);
    if (is_at(r, WEIR__TOKEN_TEXT))
        take(r, &target);
    else if (is_at(r, WEIR__TOKEN_OPEN) && weir__config_is_list(target.row))
        read_list(r, &target);
    else
        unexpected(r);
}

/* "{" { option } "}" */
static void read_body(struct reader *r, const struct section *section)
{
    int depth = r->depth;

    advance(r);
    while (r->depth > depth && !is_beyond(r)) {
        if (is_at(r, WEIR__TOKEN_TEXT))
            read_option(r, section);
        else if (is_at(r, WEIR__TOKEN_CLOSE))
            advance(r);
        else
            unexpected(r);
    }
    if (r->depth > depth && is_at(r, WEIR__TOKEN_END))
        unexpected(r);
    r->depth = depth;
}

static void refuse_again(struct reader *r, const char *what, const char *name,
                         int line)
{
    fail(r, WEIR_EINVAL, r->scan.line,
         "%s %s began on line %d already: write all of it there", what, name,
         line);
}

/* Of a topic or a schedule. */
static void check_name(struct reader *r, const char *section, const char *name)
{
    struct weir_error why;

    if (*name == '\0')
        fail(r, WEIR_EINVAL, r->scan.line,
             "a %s has an empty name: write 1 to 40 letters, digits and "
             ". _ : -",
             section);
    else if (weir__topic_check(weir__slice_str(name), &why) < 0)
        fail(r, WEIR_EINVAL, r->scan.line, "%s", why.text);
}

static void check_topic(struct reader *r, const char *name)
{
    const struct weir__config *config = r->config;

    check_name(r, "topic", name);
    for (size_t i = 0; i < config->topic_count; i++)
        if (strcmp(config->topics[i].name, name) == 0)
            refuse_again(r, "topic", name, config->topics[i].line);
}

/* NULL: out of memory. */
static struct weir__config_topic *add_topic(struct reader *r)
{
    struct weir__config *config = r->config;
    struct weir__config_topic *topics, *topic;
    char *name = copy(r, weir__scan_text(&r->scan));

    if (name == NULL)
        return NULL;
    check_topic(r, name);
    topics = weir__mem_grow(config->topics, config->topic_count + 1,
                            sizeof(*topics));
    if (topics == NULL) {
        weir__mem_free(name);
        no_memory(r);
        return NULL;
    }
    config->topics = topics;
    topic = &topics[config->topic_count++];
    *topic = (struct weir__config_topic){
        .line = r->scan.line, .name = name, .is_partial = r->is_lost};
    weir__options_init(&topic->values);
    return topic;
}

/* NULL: out of memory. */
static struct weir__config_cron *add_cron(struct reader *r)
{
    struct weir__config *config = r->config;
    struct weir__config_cron *crons;
    char *name = copy(r, weir__scan_text(&r->scan));

    if (name == NULL)
        return NULL;
    check_name(r, "schedule", name);
    for (size_t i = 0; i < config->cron_count; i++)
        if (strcmp(config->crons[i].name, name) == 0)
            refuse_again(r, "cron", name, config->crons[i].line);
    crons =
        weir__mem_grow(config->crons, config->cron_count + 1, sizeof(*crons));
    if (crons == NULL) {
        weir__mem_free(name);
        no_memory(r);
        return NULL;
    }
    config->crons = crons;
    crons[config->cron_count] = (struct weir__config_cron){
        .line = r->scan.line, .name = name, .is_partial = r->is_lost};
    return &crons[config->cron_count++];
}

/* The value behind `topic` or `cron`. */
static bool read_title(struct reader *r, struct section *section)
{
    int line = r->scan.line;
    bool is_topic = strcmp(section->name, "topic") == 0;

    advance(r);
    if (!is_at(r, WEIR__TOKEN_TEXT)) {
        missing(r, line, "name", section->name,
                is_topic ? "write topic \"NAME\" { and its options and }"
                         : "write cron \"NAME\" { and its options and }");
        return false;
    }
    if (is_topic) {
        section->topic = add_topic(r);
        section->base = section->topic;
        if (section->topic != NULL)
            r->is_partial = &section->topic->is_partial;
    } else {
        struct weir__config_cron *cron = add_cron(r);

        section->base = cron;
        if (cron != NULL)
            r->is_partial = &cron->is_partial;
    }
    if (section->base != NULL)
        advance(r);
    return section->base != NULL;
}

static void read_section(struct reader *r)
{
    struct section section = {.base = r->config};
    int line = r->scan.line, *first;

    section.name = weir__config_section(weir__scan_text(&r->scan));
    if (section.name == NULL) {
        unknown(r, NULL);
        return;
    }
    if (strcmp(section.name, "topic") == 0 ||
        strcmp(section.name, "cron") == 0) {
        if (!read_title(r, &section))
            return;
    } else {
        first = section.name == weir__config_sections[0] ? &r->redis_line
                                                         : &r->worker_line;
        if (*first > 0)
            refuse_again(r, "section", section.name, *first);
        else
            *first = line;
        advance(r);
    }
    if (is_at(r, WEIR__TOKEN_OPEN))
        read_body(r, &section);
    else if (is_at(r, WEIR__TOKEN_END))
        fail(r, WEIR_EINVAL, r->scan.line,
             "the file ends before a section began: write { and its options "
             "and }");
    else
        missing(r, line, "{", section.name,
                "write { and the section's options and }");
    r->is_partial = &r->config->is_partial;
}

static void read_sections(struct reader *r)
{
    while (!is_at(r, WEIR__TOKEN_END) && r->rc != WEIR_ENOMEM) {
        if (is_at(r, WEIR__TOKEN_TEXT)) {
            read_section(r);
        } else if (is_at(r, WEIR__TOKEN_CLOSE)) {
            if (!r->is_lost)
                fail(r, WEIR_EINVAL, r->scan.line,
                     "there is no { for this }: remove it");
            recover(r, r->scan.line);
        } else {
            unexpected(r);
        }
    }
}

/* --- beginning and end --------------------------------------------------- */

int weir__config_read(const char *path, weir__config_tell_fn tell, void *arg,
                      struct weir__config **ret_config)
{
    struct reader r = {.path = path, .tell = tell, .arg = arg};
    const struct weir__config_option *option = weir__config_options;
    int rc;

    r.config = weir__mem_new(sizeof(*r.config));
    if (r.config == NULL) {
        no_memory(&r);
        return r.rc;
    }
    r.is_partial = &r.config->is_partial;
    for (; option->section != NULL; option++)
        if (weir__option_is_number(&option->row))
            ((struct weir__config_number *)weir__config_holder(option,
                                                               r.config))
                ->value = option->row.fallback;
    rc = weir__scan_open(&r.scan, path);
    if (r.scan.text.failed)
        no_memory(&r);
    else if (rc < 0)
        fail(&r, rc, r.scan.line, "%s", r.scan.why.text);
    else
        read_sections(&r);
    weir__scan_fini(&r.scan);
    if (r.is_lost)
        r.config->is_partial = true;
    if (r.rc == WEIR_OK || (rc == WEIR_OK && r.rc == WEIR_EINVAL))
        *ret_config = r.config;
    else
        weir__config_free(r.config);
    return r.rc;
}
