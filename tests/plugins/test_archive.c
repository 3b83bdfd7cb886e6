/* SPDX-License-Identifier: MIT */
#include <weir/test.h>

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "tests/harness/tempdir.h"
#include "tests/harness/test.h"

static struct tempdir dir;
static char file[200];
static struct weir_error err;

static struct weir_trial *open_archive(void)
{
    char path[220];
    const char *const values[] = {path};
    struct weir_trial_options options = {
        .topic = "order.dead",
        .serve = {.plugin = WEIR_TEST_PLUGINS "/archive.so",
                  .plugin_options = values,
                  .plugin_option_count = 1,
                  .options = {"retry=1s ..."}},
    };
    struct weir_trial *trial = NULL;

    (void)snprintf(path, sizeof(path), "path=%s", file);
    EXPECT_INT(WEIR_OK, weir_trial_open(&options, &trial, &err));
    return trial;
}

static void make_dir(void)
{
    EXPECT_TRUE(tempdir_make(&dir));
    (void)snprintf(file, sizeof(file), "%s/dead.sqlite", dir.path);
}
TEST_SETUP(make_dir)

static struct weir_origin origin_of(const char *id, uint64_t token)
{
    return (struct weir_origin){
        .topic = weir__slice_str("order.close"),
        .id = weir__slice_str(id),
        .token = token,
        .died_ms = 1700000000000,
        .reason = weir__slice_str("exhausted"),
        .error = weir__slice_str("gateway said no"),
        .attempts = 9,
    };
}

static void add(struct weir_trial *trial, const char *id,
                const struct weir_origin *origin)
{
    struct weir_trial_job job = {
        .id = id,
        .json = "{\"order\":42}",
        .url = "http://a/b",
        .counters = {.failures = 8, .timeouts = 2, .crashes = 1, .snoozes = 4},
        .origin = origin,
    };

    EXPECT_INT(WEIR_OK, weir_trial_add(trial, &job, &err));
}

static sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;

    EXPECT_INT(SQLITE_OK, sqlite3_open(file, &db));
    return db;
}

/* The first row of a query, its columns joined by "|". */
static const char *ask(const char *sql)
{
    static char text[400];
    sqlite3 *db = open_db();
    sqlite3_stmt *query = NULL;
    size_t len = 0;

    text[0] = '\0';
    EXPECT_INT(SQLITE_OK, sqlite3_prepare_v2(db, sql, -1, &query, NULL));
    EXPECT_INT(SQLITE_ROW, sqlite3_step(query));
    for (int i = 0; i < sqlite3_column_count(query); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
                                i == 0 ? "" : "|",
                                (const char *)sqlite3_column_text(query, i));
    EXPECT_INT(SQLITE_OK, sqlite3_finalize(query));
    EXPECT_INT(SQLITE_OK, sqlite3_close(db));
    return text;
}

TEST(a_dead_job_becomes_a_row)
{
    struct weir_origin origin = origin_of("42", 7);
    struct weir_trial *trial;

    trial = open_archive();
    add(trial, "42", &origin);
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "42"));
    EXPECT_STR("order.close|42|7|1700000000000|exhausted|gateway said no|9|8|"
               "2|1|4|http://a/b|{\"order\":42}",
               ask("SELECT * FROM dead"));
    weir_trial_free(trial);
}

/* Of a file that begins as the database does. */
static int mode_of(const char *end)
{
    char path[220];
    struct stat status = {0};

    (void)snprintf(path, sizeof(path), "%s%s", file, end);
    EXPECT_INT(0, stat(path, &status));
    return (int)(status.st_mode & 0777);
}

TEST(what_died_can_be_read_by_its_owner_alone)
{
    struct weir_origin origin = origin_of("42", 7);
    struct weir_trial *trial;

    (void)umask(022);
    trial = open_archive();
    add(trial, "42", &origin);
    weir_trial_advance(trial, 0);
    EXPECT_INT(0600, mode_of(""));
    EXPECT_INT(0600, mode_of("-wal"));
    EXPECT_INT(0600, mode_of("-shm"));
    weir_trial_free(trial);
}

/* What opening makes of a file that is not there. */
static void expect_private(mode_t mask)
{
    (void)umask(mask);
    weir_trial_free(open_archive());
    (void)umask(022);
    EXPECT_INT(0600, mode_of(""));
}

TEST(what_a_link_leads_to_is_made_for_its_owner_alone)
{
    char target[220];

    (void)snprintf(target, sizeof(target), "%s.target", file);
    EXPECT_INT(0, symlink(target, file));
    expect_private(022);
    EXPECT_INT(0600, mode_of(".target"));
}

TEST(a_database_is_its_owner_s_whatever_the_umask)
{
    expect_private(0);
    (void)snprintf(file, sizeof(file), "%s/other.sqlite", dir.path);
    expect_private(0777);
    /* Only a whole ":memory:" is no file. */
    EXPECT_INT(0, chdir(dir.path));
    (void)snprintf(file, sizeof(file), ":memory:.sqlite");
    expect_private(022);
}

TEST(a_database_that_is_there_keeps_its_mode)
{
    struct weir_origin origin = origin_of("42", 7);
    struct weir_trial *trial;

    (void)umask(022);
    trial = open_archive();
    weir_trial_free(trial);
    EXPECT_INT(0, chmod(file, 0640));
    trial = open_archive();
    add(trial, "42", &origin);
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "42"));
    EXPECT_INT(0640, mode_of(""));
    EXPECT_INT(0640, mode_of("-wal"));
    weir_trial_free(trial);
}

TEST(a_table_s_name_has_64_letters_at_most)
{
    char path[220], table[80] = "table=";
    const char *const values[] = {path, table};
    struct weir_trial_options options = {
        .serve = {.plugin = WEIR_TEST_PLUGINS "/archive.so",
                  .plugin_options = values,
                  .plugin_option_count = 2},
    };
    struct weir_trial *trial = NULL;

    (void)snprintf(path, sizeof(path), "path=%s", file);
    memset(table + 6, 't', 64);
    EXPECT_INT(WEIR_OK, weir_trial_open(&options, &trial, &err));
    weir_trial_free(trial);
    (void)snprintf(path, sizeof(path), "path=%s.other", file);
    table[70] = 't';
    EXPECT_INT(WEIR_EINVAL, weir_trial_open(&options, &trial, &err));
    EXPECT_CONTAINS("cannot be a table", err.text);
}

TEST(the_same_death_is_one_row_and_another_one_a_second)
{
    struct weir_origin first = origin_of("42", 7), second = origin_of("42", 8);
    struct weir_trial *trial;

    trial = open_archive();
    add(trial, "a", &first);
    add(trial, "b", &first);
    weir_trial_advance(trial, 0);
    weir_trial_free(trial);
    trial = open_archive(); /* a worker that comes back */
    add(trial, "a", &first);
    add(trial, "b", &second);
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "a"));
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "b"));
    EXPECT_STR("2", ask("SELECT count(*) FROM dead"));
    weir_trial_free(trial);
}

TEST(a_job_that_did_not_die_is_refused)
{
    struct weir_trial *trial;

    trial = open_archive();
    add(trial, "42", NULL);
    weir_trial_advance(trial, 0);
    EXPECT_INT(WEIR_FAIL, weir_trial_last(trial)->verdict);
    EXPECT_STR("archive: the job did not come by on_dead",
               weir_trial_last(trial)->reason);
    EXPECT_STR("0", ask("SELECT count(*) FROM dead"));
    weir_trial_free(trial);
}

TEST(jobs_wait_while_somebody_else_writes)
{
    struct weir_origin origin = origin_of("42", 7);
    struct weir_trial *trial;
    sqlite3 *other;

    trial = open_archive();
    other = open_db();
    EXPECT_INT(SQLITE_OK,
               sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL));
    add(trial, "42", &origin);
    weir_trial_advance(trial, 1000);
    EXPECT_INT(WEIR_SNOOZE, weir_trial_last(trial)->verdict);
    EXPECT_INT(6, weir_trial_run_count(trial));
    EXPECT_INT(SQLITE_OK, sqlite3_exec(other, "COMMIT", NULL, NULL, NULL));
    weir_trial_advance(trial, 1000);
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "42"));
    EXPECT_STR("1", ask("SELECT count(*) FROM dead"));
    EXPECT_INT(SQLITE_OK, sqlite3_close(other));
    weir_trial_free(trial);
}

/* Let no file grow: the disk is full. */
static void fill_disk(bool is_full)
{
    struct rlimit limit;

    EXPECT_INT(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = is_full ? 4096 : limit.rlim_max;
    EXPECT_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
}

TEST(on_a_full_disk_no_job_is_lost)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct weir_trial *trial;
    char id[20];

    EXPECT_INT(0, sigaction(SIGXFSZ, &ignore, NULL));
    trial = open_archive();
    fill_disk(true);
    for (uint64_t i = 0; i < 100; i++) {
        struct weir_origin origin = origin_of("42", i);

        (void)snprintf(id, sizeof(id), "%d", (int)i);
        add(trial, id, &origin);
    }
    weir_trial_advance(trial, 2000);
    for (size_t i = 0; i < weir_trial_run_count(trial); i++)
        EXPECT_INT(WEIR_RETRY, weir_trial_run_at(trial, i)->verdict);
    EXPECT_TRUE(weir_trial_run_count(trial) >= 200);
    fill_disk(false);
    weir_trial_advance(trial, 2000);
    EXPECT_STR("100", ask("SELECT count(*) FROM dead"));
    EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, "99"));
    weir_trial_free(trial);
}

/* SQLite may have so many bytes more: rows and commits fail in turn. */
TEST(without_memory_no_job_loses_an_attempt)
{
    struct weir_trial *trial = open_archive();
    uint64_t token = 0;
    char id[20];

    for (int bytes = 0; bytes < 32768; bytes += 256) {
        for (int i = 0; i < 10; i++) {
            struct weir_origin origin = origin_of("42", ++token);

            (void)snprintf(id, sizeof(id), "%d", (int)token);
            add(trial, id, &origin);
        }
        (void)sqlite3_hard_heap_limit64(sqlite3_memory_used() + bytes);
        weir_trial_advance(trial, 2000);
        (void)sqlite3_hard_heap_limit64(0);
        weir_trial_advance(trial, 2000);
        EXPECT_INT(WEIR_TRIAL_DONE, weir_trial_state(trial, id));
    }
    for (size_t i = 0; i < weir_trial_run_count(trial); i++)
        EXPECT_TRUE(weir_trial_run_at(trial, i)->verdict != WEIR_RETRY);
    EXPECT_TRUE(weir_trial_run_count(trial) > token);
    EXPECT_STR("1280", ask("SELECT count(*) FROM dead"));
    weir_trial_free(trial);
}

static void expect_refusal(const char *option, const char *part)
{
    const char *const values[] = {option};
    struct weir_trial_options options = {
        .serve = {.plugin = WEIR_TEST_PLUGINS "/archive.so",
                  .plugin_options = values,
                  .plugin_option_count = 1},
    };
    struct weir_trial *trial = NULL;

    EXPECT_TRUE(weir_trial_open(&options, &trial, &err) < 0);
    EXPECT_CONTAINS(part, err.text);
}

TEST(what_cannot_be_opened_is_refused_with_a_sentence)
{
    expect_refusal("path=/nowhere/dead.sqlite",
                   "plugin archive: database /nowhere/dead.sqlite: unable to "
                   "open database file");
    expect_refusal("path=/dev/null", "plugin archive: database /dev/null: ");
    expect_refusal("table=dead", "option \"path\" is required");
    EXPECT_INT(0, chdir(dir.path));
    expect_refusal("path=file:dead.sqlite?mode=rwc",
                   "plugin archive: option \"path\": \"file:\" begins a URI, "
                   "wanted the name of a file");
    EXPECT_TRUE(access("dead.sqlite", F_OK) != 0);
    EXPECT_TRUE(access("file:dead.sqlite?mode=rwc", F_OK) != 0);
}

TEST(a_name_that_is_no_table_is_refused)
{
    static const char *const names[] = {"table=", "table=1st", "table=a\"b",
                                        "table=a b"};

    for (size_t i = 0; i < 4; i++) {
        char path[220];
        const char *const values[] = {path, names[i]};
        struct weir_trial_options options = {
            .serve = {.plugin = WEIR_TEST_PLUGINS "/archive.so",
                      .plugin_options = values,
                      .plugin_option_count = 2},
        };
        struct weir_trial *trial = NULL;

        (void)snprintf(path, sizeof(path), "path=%s", file);
        EXPECT_INT(WEIR_EINVAL, weir_trial_open(&options, &trial, &err));
        EXPECT_CONTAINS("cannot be a table", err.text);
        EXPECT_TRUE(access(file, F_OK) != 0);
    }
}
