/* SPDX-License-Identifier: MIT */
#include "adapters/dl/loader.h"

#include <stdio.h>
#include <string.h>

#include "tests/dl/load.h"
#include "tests/harness/test.h"

/* Expects that the plugin called `name` is refused with `code` and a sentence
 * that names its file and ends so. */
static void expect_refused(int code, const char *name, const char *end)
{
    struct weir__plugin_file file = {0};
    struct weir_error err = {0};
    int rc = weir__plugin_load(path_of(name), &file, &err);

    EXPECT_STR(weir_error_name(code), weir_error_name(rc));
    EXPECT_INT(code, err.code);
    EXPECT_TRUE(file.table == NULL);
    EXPECT_CONTAINS(path_of(name), err.text);
    EXPECT_CONTAINS(end, err.text);
    EXPECT_STR(end, err.text + strlen(err.text) - strlen(end));
    EXPECT_INT(code, weir__plugin_load(path_of(name), &file, NULL));
}

TEST(a_file_that_is_missing_is_refused)
{
    expect_refused(WEIR_ENOTFOUND, "no_such_plugin",
                   "cannot open shared object file: No such file or "
                   "directory");
}

TEST(a_path_without_a_slash_is_refused)
{
    struct weir__plugin_file file;
    struct weir_error err;

    EXPECT_INT(WEIR_EINVAL, weir__plugin_load("libc.so.6", &file, &err));
    EXPECT_STR("plugin libc.so.6: a path needs a slash, as in ./libc.so.6",
               err.text);
}

TEST(a_directory_is_refused)
{
    struct weir__plugin_file file;
    struct weir_error err;

    EXPECT_INT(WEIR_ENOTFOUND, weir__plugin_load("/tmp", &file, &err));
    EXPECT_STR("plugin cannot be loaded: /tmp: cannot read file data: Is a "
               "directory",
               err.text);
}

TEST(a_file_that_is_no_shared_object_is_refused)
{
    FILE *text = tmpfile();
    struct weir__plugin_file file;
    struct weir_error err;
    char path[64];

    EXPECT_TRUE(text != NULL);
    for (int i = 0; i < 1000; i++)
        EXPECT_TRUE(fputs("not an ELF file\n", text) >= 0);
    EXPECT_INT(0, fflush(text));
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(text));
    EXPECT_INT(WEIR_ENOTFOUND, weir__plugin_load(path, &file, &err));
    EXPECT_CONTAINS(path, err.text);
    EXPECT_CONTAINS("invalid ELF header", err.text);
    EXPECT_INT(0, fclose(text));
}

TEST(a_shared_object_that_is_no_plugin_is_refused)
{
    expect_refused(WEIR_EABI, "no_symbol",
                   ": not a weir plugin of ABI 1: it exports no "
                   "weir_plugin_1");
}

TEST(an_undefined_symbol_is_found_at_load_not_at_the_first_job)
{
    expect_refused(WEIR_ENOTFOUND, "undefined_symbol",
                   ": undefined symbol: nobody_has_this");
}

TEST(another_abi_is_refused)
{
    expect_refused(WEIR_EABI, "wrong_abi",
                   ": built for plugin ABI 7, this weir has 1");
}

TEST(flags_that_cannot_be_are_refused)
{
    expect_refused(WEIR_EABI, "unknown_flag",
                   ": it has a flag that this weir does not know");
    expect_refused(WEIR_EINVAL, "blocking_flush",
                   ": it blocks and has a flush function; only one of them "
                   "can be");
}

TEST(sizes_that_cannot_be_are_refused)
{
    expect_refused(WEIR_EABI, "size_zero",
                   ": its table claims 0 bytes; that cannot be");
    expect_refused(WEIR_EABI, "size_small",
                   ": its table claims 56 bytes; that cannot be");
    expect_refused(WEIR_EABI, "size_odd",
                   ": its table claims 92 bytes; that cannot be");
    expect_refused(WEIR_EABI, "size_huge",
                   ": its table claims 1073741824 bytes; that cannot be");
}

TEST(a_plugin_without_a_proper_name_is_refused)
{
    expect_refused(WEIR_EINVAL, "no_name",
                   ": it has no name of a-z, 0-9, _ and -");
    expect_refused(WEIR_EINVAL, "bad_name",
                   ": it has no name of a-z, 0-9, _ and -");
}

TEST(a_plugin_that_cannot_run_is_refused)
{
    expect_refused(WEIR_EINVAL, "no_run", ": it has no run function");
}

static enum weir_verdict run_batch(void *self, struct weir_job *const *jobs,
                                   size_t count, enum weir_verdict *verdicts)
{
    (void)self;
    (void)jobs;
    (void)count;
    (void)verdicts;
    return WEIR_DONE;
}

TEST(a_handler_of_many_jobs_will_do_and_older_tables_have_none)
{
    struct weir_plugin table = {
        .abi = WEIR_PLUGIN_ABI,
        .size = sizeof(table),
        .name = "many",
        .run_batch = run_batch,
    };
    struct weir__plugin_file file;
    struct weir_error err;

    EXPECT_INT(WEIR_OK, weir__plugin_check(&table, "here", &file, &err));
    EXPECT_TRUE(file.copy.run_batch == run_batch);
    table.size = offsetof(struct weir_plugin, run_batch);
    EXPECT_INT(WEIR_EINVAL, weir__plugin_check(&table, "here", &file, &err));
    EXPECT_STR("plugin here: it has no run function", err.text);
}

TEST(declarations_of_options_that_contradict_themselves_are_refused)
{
    static const struct {
        const char *name;
        const char *end;
    } cases[] = {
        {"option_twice", ": option \"rate\" is declared twice"},
        {"option_unknown_type",
         ": option \"rate\" has a type that this weir does not know"},
        {"option_bad_name", ": option 1 has no name of a-z, 0-9 and _"},
        {"option_no_name", ": option 1 has no name of a-z, 0-9 and _"},
        {"option_bad_fallback",
         ": option \"rate\" has a fallback that is not one of its values"},
        {"option_bad_bounds",
         ": option \"rate\" has a least value above its largest"},
        {"option_no_choices",
         ": option \"mode\" has no choices, or an empty one"},
        {"option_empty_choice",
         ": option \"mode\" has no choices, or an empty one"},
        {"option_stray_choices",
         ": option \"rate\" has choices, but its type has none"},
        {"option_bad_flag",
         ": option \"rate\" has a flag that this weir does not know"},
        {"option_absent",
         ": its table of 3 options is absent or has more than 256"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(WEIR_EINVAL, cases[i].name, cases[i].end);
}

TEST(declarations_of_options_that_are_too_small_are_refused)
{
    expect_refused(WEIR_EABI, "option_small",
                   ": its options claim 8 bytes each; that cannot be");
}

TEST(a_table_that_ends_behind_run_has_nothing_else)
{
    struct weir__plugin_file file = load("minimal");
    struct weir__instance instance = {0};
    const char *const options[4] = {NULL};

    EXPECT_TRUE(file.table->close != NULL);
    EXPECT_TRUE(file.copy.close == NULL);
    EXPECT_INT(WEIR_OK, open_with(&file, options, &instance, NULL));
    EXPECT_TRUE(instance.self == NULL);
    EXPECT_INT(WEIR_DONE, file.copy.run(instance.self, NULL));
    weir__instance_close(&instance);
}

TEST(a_plugin_of_the_future_works)
{
    struct weir__plugin_file file = load("grown");
    struct weir__instance instance = {0};
    const char *const options[4] = {"one=7"};
    struct weir_error err = {0};

    (void)open_with(&file, options, &instance, &err);
    EXPECT_STR("", err.text);
    EXPECT_TRUE(instance.file == &file);
    weir__instance_close(&instance);
}
