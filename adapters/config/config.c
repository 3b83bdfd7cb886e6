/* SPDX-License-Identifier: MIT */
#include "adapters/config/config.h"

#include <confuse.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "adapters/config/option.h"
#include "adapters/config/source.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Two options in each section that no file can name, for it holds no control
 * bytes. libConfuse has no user pointer: SELF leads its callbacks to the
 * reader. It says nothing when a section begins either: OPENED has a default,
 * which libConfuse reads, through our callback, each time. */
#define SELF   "\001"
#define OPENED "\002"

enum { EXTRA = 3 }; /* SELF, OPENED and what ends an array */

struct reader {
    const char *path;
    struct weir_error *err;
    int rc; /* the first error; what follows from it is not looked at */
    struct weir__config *config;
    int redis_line; /* where the section begins; 0: not yet */
    int worker_line;
};

/* All that libConfuse is told of what a file may hold; it copies it. */
struct grammar {
    cfg_opt_t redis[WEIR__CONFIG_OPTION_COUNT + EXTRA];
    cfg_opt_t worker[WEIR__CONFIG_OPTION_COUNT + EXTRA];
    cfg_opt_t topic[WEIR__CONFIG_OPTION_COUNT + EXTRA];
    cfg_opt_t root[5];
    char opened[2]; /* the default of OPENED: any word */
};

static struct reader *reader_of(cfg_t *cfg)
{
    struct reader *reader = cfg_getptr(cfg, SELF);

    WEIR_ASSERT(reader != NULL && reader->config != NULL);
    return reader;
}

static struct weir__config_place place_of(const struct reader *reader,
                                          const cfg_t *cfg)
{
    return (struct weir__config_place){
        .path = reader->path,
        .line = cfg->line,
        .err = reader->err,
    };
}

static bool is_topic(const cfg_t *cfg)
{
    return strcmp(cfg->name, "topic") == 0;
}

static struct weir__config_topic *last_topic(const struct weir__config *config)
{
    WEIR_ASSERT(config->topic_count > 0);
    return &config->topics[config->topic_count - 1];
}

/* --- sections ------------------------------------------------------------ */

static int add_topic(struct reader *reader, const char *name,
                     const struct weir__config_place *place)
{
    struct weir__config *config = reader->config;
    struct weir__config_topic topic = {.line = place->line};
    struct weir__config_topic *topics;
    struct weir_error why = {0};

    if (*name == '\0')
        return weir__config_fail(place, WEIR_EINVAL,
                                 "a topic has an empty name: write 1 to 40 "
                                 "letters, digits and . _ : -");
    if (weir__topic_check(weir__slice_str(name), &why) < 0)
        return weir__config_fail(place, WEIR_EINVAL, "%s", why.text);
    topics = weir__mem_grow(config->topics, config->topic_count + 1,
                            sizeof(*topics));
    if (topics == NULL)
        return weir__config_fail(place, WEIR_ENOMEM, "out of memory");
    config->topics = topics;
    topic.name = weir__config_text_copy(name);
    if (topic.name == NULL)
        return weir__config_fail(place, WEIR_ENOMEM, "out of memory");
    weir__config_option_defaults("topic", &topic);
    topics[config->topic_count] = topic;
    config->topic_count++;
    return WEIR_OK;
}

static int refuse_again(const char *what, const char *name, int line,
                        const struct weir__config_place *place)
{
    return weir__config_fail(place, WEIR_EINVAL,
                             "%s %s began on line %d already: write all of it "
                             "there",
                             what, name, line);
}

static int open_single(int *line, const char *name,
                       const struct weir__config_place *place)
{
    if (*line > 0)
        return refuse_again("section", name, *line, place);
    *line = place->line;
    return WEIR_OK;
}

/* Runs when a section begins. libConfuse aborts when it reports a failure, so
 * an error waits in the reader. */
static int opened(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    struct reader *reader = reader_of(cfg);
    struct weir__config_place place = place_of(reader, cfg);

    (void)opt;   /* is OPENED */
    (void)value; /* is its default */
    *(void **)result = NULL;
    if (reader->rc < 0)
        return 0;
    if (is_topic(cfg))
        reader->rc = add_topic(reader, cfg->title, &place);
    else if (strcmp(cfg->name, "redis") == 0)
        reader->rc = open_single(&reader->redis_line, "redis", &place);
    else
        reader->rc = open_single(&reader->worker_line, "worker", &place);
    return 0;
}

/* --- options ------------------------------------------------------------- */

/* Runs for each value, and each element of a list. */
static int take(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    struct reader *reader = reader_of(cfg);
    struct weir__config_place place = place_of(reader, cfg);
    const struct weir__config_option *option =
        weir__config_option_find(cfg->name, opt->name);
    void *base = reader->config;

    *(void **)result = NULL;
    if (reader->rc < 0)
        return -1;
    if (option == NULL) {
        /* "redis|url" in quotes is a way of libConfuse's to reach into a
         * section. */
        reader->rc = weir__config_option_unknown("root", opt->name, &place);
        return -1;
    }
    if (is_topic(cfg))
        base = last_topic(reader->config);
    /* The element was counted before it is read, so a list's first is 1. */
    reader->rc =
        weir__config_option_take(option, base, value, opt->nvalues > 1, &place);
    if (reader->rc == WEIR_OK && option->form == WEIR__OPTION_TOPIC &&
        strcmp(value, cfg->title) == 0)
        reader->rc = weir__config_fail(&place, WEIR_EINVAL,
                                       "%s: \"%s\" is this topic itself: write "
                                       "another one",
                                       option->name, value);
    return reader->rc < 0 ? -1 : 0;
}

/* --- libConfuse's own errors --------------------------------------------- */

struct saying {
    const char *format; /* libConfuse's; its argument is a string or none */
    const char *what;   /* ours, before the argument */
    const char *instead;
};

static const struct saying sayings[] = {
    {"missing equal sign after option '%s'", "there is no = behind ",
     "write NAME = VALUE"},
    {"missing opening brace for section '%s'", "there is no { behind ",
     "write { and the section's options and }"},
    {"missing title for section '%s'", "there is no name behind ",
     "write topic \"NAME\" { and its options and }"},
    {"unexpected closing brace", "there is no { for this }", "remove it"},
    {"premature end of file", "the file ends before a section began",
     "write { and its options and }"},
};

enum { SAYING_COUNT = sizeof(sayings) / sizeof(sayings[0]) };

static const char *instead_of_token(const char *token)
{
    switch (*token) {
    case '{':
        return "write { behind a section's name, or behind the = of a list";
    case '}':
        return "write a value before it";
    case '=':
        return "write = between an option's name and its value";
    case ',':
        return "write , between the texts of a list, within { and }";
    default:
        return "write , between the texts of a list, and } behind them";
    }
}

/* Where a topic that was read already begins. */
static int line_of(const struct weir__config *config, const char *topic)
{
    for (size_t i = 0; i < config->topic_count; i++)
        if (strcmp(config->topics[i].name, topic) == 0)
            return config->topics[i].line;
    WEIR_UNREACHABLE("libConfuse saw it, so it was added");
}

static void translate(struct reader *reader, cfg_t *cfg, const char *format,
                      const char *arg)
{
    struct weir__config_place place = place_of(reader, cfg);
    char quote[WEIR__TEXT_QUOTE_CAP];

    (void)weir__text_quote(weir__slice_str(arg), quote);
    if (strcmp(format, "no such option '%s'") == 0) {
        reader->rc = weir__config_option_unknown(cfg->name, arg, &place);
        return;
    }
    if (strcmp(format, "unexpected token '%s'") == 0) {
        reader->rc = weir__config_fail(&place, WEIR_EINVAL,
                                       "%s is not expected here: %s", quote,
                                       instead_of_token(arg));
        return;
    }
    if (strcmp(format, "found duplicate title '%s'") == 0) {
        reader->rc =
            refuse_again("topic", arg, line_of(reader->config, arg), &place);
        return;
    }
    for (size_t i = 0; i < SAYING_COUNT; i++)
        if (strcmp(format, sayings[i].format) == 0)
            reader->rc =
                weir__config_fail(&place, WEIR_EINVAL, "%s%s: %s",
                                  sayings[i].what, quote, sayings[i].instead);
}

/* libConfuse's way to say that something is wrong. Its formats are known, and
 * where they are not (another version, another language) its own sentence is
 * taken as it is. */
WEIR_PRINTF(2, 0)
static void complain(cfg_t *cfg, const char *format, va_list args)
{
    struct reader *reader = reader_of(cfg);
    struct weir__config_place place = place_of(reader, cfg);
    const char *conversion = strchr(format, '%');
    char text[128];
    va_list copy;

    if (reader->rc < 0)
        return;
    va_copy(copy, args);
    if (conversion == NULL)
        translate(reader, cfg, format, "");
    else if (conversion[1] == 's' && strchr(conversion + 1, '%') == NULL)
        translate(reader, cfg, format, va_arg(copy, const char *));
    va_end(copy);
    if (reader->rc < 0)
        return;
    (void)vsnprintf(text, sizeof(text), format, args); /* cut */
    reader->rc = weir__config_fail(&place, WEIR_EINVAL,
                                   "%s: docs/configuration.md shows how it is "
                                   "written",
                                   text);
}

/* --- telling libConfuse, reading, freeing -------------------------------- */

static void fill_section(const char *section, cfg_opt_t *opts, void **self,
                         char *opened_default)
{
    const struct weir__config_option *option = weir__config_options;

    *opts = (cfg_opt_t)CFG_PTR_CB(SELF, NULL, CFGF_NODEFAULT, NULL, NULL);
    opts->simple_value.ptr = self;
    opts++;
    *opts++ =
        (cfg_opt_t)CFG_PTR_CB(OPENED, opened_default, CFGF_NONE, opened, NULL);
    for (; option->name != NULL; option++) {
        cfg_flag_t flags = CFGF_NODEFAULT;

        if (strcmp(option->section, section) != 0)
            continue;
        if (weir__config_option_is_list(option))
            flags |= CFGF_LIST;
        *opts++ = (cfg_opt_t)CFG_PTR_CB(option->name, NULL, flags, take, NULL);
    }
    *opts = (cfg_opt_t)CFG_END();
}

static void fill_grammar(struct grammar *grammar, void **self)
{
    cfg_opt_t root[] = {
        CFG_PTR_CB(SELF, NULL, CFGF_NODEFAULT, NULL, NULL),
        CFG_SEC("redis", grammar->redis, CFGF_NODEFAULT),
        CFG_SEC("worker", grammar->worker, CFGF_NODEFAULT),
        CFG_SEC("topic", grammar->topic,
                CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
        CFG_END(),
    };

    _Static_assert(sizeof(root) == sizeof(grammar->root), "the same array");
    root[0].simple_value.ptr = self;
    memcpy(grammar->root, root, sizeof(root));
    memcpy(grammar->opened, "1", sizeof(grammar->opened));
    fill_section("redis", grammar->redis, self, grammar->opened);
    fill_section("worker", grammar->worker, self, grammar->opened);
    fill_section("topic", grammar->topic, self, grammar->opened);
}

static int parse(struct reader *reader, struct weir__buf *source)
{
    FILE *file = fmemopen(source->ptr, source->len, "r");
    struct grammar grammar;
    void *self = reader;
    cfg_t *cfg = NULL;
    int rc = WEIR_ENOMEM;

    if (file == NULL)
        return rc;
    fill_grammar(&grammar, &self);
    cfg = cfg_init(grammar.root, CFGF_NONE);
    if (cfg != NULL) {
        (void)cfg_set_error_function(cfg, complain); /* was: none */
        if (cfg_parse_fp(cfg, file) == CFG_SUCCESS || reader->rc < 0)
            rc = reader->rc;
        (void)cfg_free(cfg); /* fails on NULL only */
    }
    (void)fclose(file); /* it was only read */
    return rc;
}

int weir__config_read(const char *path, struct weir__config **ret_config,
                      struct weir_error *err)
{
    struct weir__config_place file = {.path = path, .err = err};
    struct reader reader = {.path = path, .err = err};
    struct weir__buf source = {0};
    int rc;

    reader.config = weir__mem_new(sizeof(*reader.config));
    if (reader.config == NULL)
        return weir__config_fail(&file, WEIR_ENOMEM, "out of memory");
    weir__config_option_defaults("redis", reader.config);
    weir__config_option_defaults("worker", reader.config);
    rc = weir__config_source_read(&file, &source);
    if (rc == WEIR_OK) {
        rc = parse(&reader, &source);
        if (rc == WEIR_ENOMEM)
            rc = weir__config_fail(&file, rc, "out of memory");
    }
    weir__buf_fini(&source);
    if (rc < 0)
        weir__config_free(reader.config);
    else
        *ret_config = reader.config;
    return rc;
}

void weir__config_free(struct weir__config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->topic_count; i++) {
        weir__config_option_release("topic", &config->topics[i]);
        weir__mem_free(config->topics[i].name);
    }
    weir__mem_free(config->topics);
    weir__config_option_release("redis", config);
    weir__config_option_release("worker", config);
    weir__mem_free(config);
}
