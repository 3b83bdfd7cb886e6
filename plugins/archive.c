/* SPDX-License-Identifier: MIT */

/* Keeps dead jobs: serve the topic that `on_dead` names with this plugin, and
 * each job that died becomes a row of an SQLite database:
 *
 *     topic, id   where it died
 *     token       of the claim under which it died; the three are the key
 *     died_ms     when its last run began, in ms since 1970
 *     reason      failed, exhausted, crashed, malformed
 *     error       text of its last failed run
 *     attempts, failures, timeouts, crashes, snoozes
 *     url         NULL when it had none
 *     body        as JSON
 *
 * The rows of a turn are one transaction that is committed, and on the disk,
 * before the turn's verdicts leave the process. A job that comes again, because
 * its worker died in between, finds its row there: that is done as well. While
 * somebody else writes to the database, or this worker lacks memory or
 * descriptors, jobs are snoozed; when writing fails otherwise the turn's jobs
 * are retried. Readers are never in the way, nor is one in theirs
 * (write-ahead log). */

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/plugin.h>

enum { OPTION_PATH, OPTION_TABLE };

enum { OPEN_MS = 5000, BUSY_MS = 200, SQL_CAP = 1024, TABLE_MAX = 64 };

struct archive {
    sqlite3 *db;
    sqlite3_stmt *insert;
    bool has_failed; /* some row of this turn could not be written */
    bool was_short;  /* this worker lacked memory or descriptors for it */
    char *json;      /* of the body; kept from job to job */
    size_t json_cap;
};

static const struct weir_option options[] = {
    [OPTION_PATH] =
        {
            .name = "path",
            .type = WEIR_OPTION_TEXT,
            .help =
                "File of the database; made, for its owner alone, when it is "
                "not there.",
        },
    [OPTION_TABLE] =
        {
            .name = "table",
            .type = WEIR_OPTION_TEXT,
            .fallback = "dead",
            .help = "Table that rows are added to, letters, digits and _.",
        },
};

/* --- opening ------------------------------------------------------------- */

static bool is_table(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strspn(name, letters);

    return len > 0 && len <= TABLE_MAX && name[len] == '\0' &&
           (name[0] < '0' || name[0] > '9');
}

/* Opening may wait, for instance while somebody recovers the log that a killed
 * worker left; running may not. */
static bool set_up(struct archive *archive, const char *table)
{
    char sql[SQL_CAP];

    (void)sqlite3_busy_timeout(archive->db, OPEN_MS); /* cannot fail */
    (void)snprintf(
        sql, sizeof(sql),
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE IF NOT EXISTS \"%s\" (topic TEXT NOT NULL,"
        " id TEXT NOT NULL, token INTEGER NOT NULL, died_ms INTEGER NOT NULL,"
        " reason TEXT NOT NULL, error TEXT NOT NULL,"
        " attempts INTEGER NOT NULL, failures INTEGER NOT NULL,"
        " timeouts INTEGER NOT NULL, crashes INTEGER NOT NULL,"
        " snoozes INTEGER NOT NULL, url TEXT, body TEXT NOT NULL,"
        " PRIMARY KEY (topic, id, token))",
        table); /* fits */
    if (sqlite3_exec(archive->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return false;
    (void)snprintf(sql, sizeof(sql),
                   "INSERT OR IGNORE INTO \"%s\" (topic, id, token, died_ms,"
                   " reason, error, attempts, failures, timeouts, crashes,"
                   " snoozes, url, body)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   table); /* fits */
    if (sqlite3_prepare_v2(archive->db, sql, -1, &archive->insert, NULL) !=
        SQLITE_OK)
        return false;
    (void)sqlite3_busy_timeout(archive->db, 0);
    return true;
}

static void close_archive(void *self)
{
    struct archive *archive = self;

    (void)sqlite3_finalize(archive->insert); /* what it failed with is known */
    (void)sqlite3_close(archive->db); /* an open transaction is rolled back */
    free(archive->json);
    free(archive);
}

/* Bodies of jobs are nobody's business: a new database is its owner's alone,
 * whatever the umask, and so is what SQLite puts beside it. One that is there
 * is not opened: closing it would drop this process's locks on it. */
static void make_file(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
    struct stat status;
    int fd;

    if (strcmp(path, ":memory:") == 0)
        return;
    fd = open(path, flags | O_EXCL, 0600);
    /* A link that leads to no file yet. */
    if (fd < 0 && errno == EEXIST && stat(path, &status) != 0 &&
        errno == ENOENT)
        fd = open(path, flags, 0600);
    if (fd < 0)
        return;             /* SQLite says what is wrong with it */
    (void)fchmod(fd, 0600); /* what the umask took */
    (void)close(fd);
}

/* Some builds of SQLite take a URI for a name: its file would be another one
 * than the one that is made, and its parameters decide. */
static bool check(const struct weir_open *with)
{
    const char *table = with->values[OPTION_TABLE].text;

    if (strncmp(with->values[OPTION_PATH].text, "file:", 5) == 0) {
        (void)snprintf(with->error, with->error_cap,
                       "option \"path\": \"file:\" begins a URI, wanted the "
                       "name of a file"); /* cut */
        return false;
    }
    if (is_table(table))
        return true;
    (void)snprintf(with->error, with->error_cap,
                   "\"%s\" cannot be a table: wanted 1 to %d letters, "
                   "digits and _, no digit first",
                   table, TABLE_MAX); /* cut */
    return false;
}

static int open_archive(const struct weir_open *with, void **ret_self)
{
    const char *path = with->values[OPTION_PATH].text;
    const char *table = with->values[OPTION_TABLE].text;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    struct archive *archive;

    if (!check(with))
        return WEIR_EINVAL;
    archive = calloc(1, sizeof(*archive));
    if (archive == NULL)
        return WEIR_ENOMEM;
    make_file(path);
    if (sqlite3_open_v2(path, &archive->db, flags, NULL) != SQLITE_OK ||
        !set_up(archive, table)) {
        (void)snprintf(with->error, with->error_cap, "database %s: %s", path,
                       sqlite3_errmsg(archive->db)); /* cut */
        close_archive(archive);
        return WEIR_ESYSTEM;
    }
    *ret_self = archive;
    return 0;
}

/* --- writing ------------------------------------------------------------- */

static bool read_body(struct archive *archive, const struct weir_job *job,
                      size_t *ret_len)
{
    size_t len = weir_job_body_json(job, archive->json, archive->json_cap);

    if (len >= archive->json_cap) {
        char *json = realloc(archive->json, len + 1);

        if (json == NULL)
            return false;
        archive->json = json;
        archive->json_cap = len + 1;
        len = weir_job_body_json(job, json, len + 1);
    }
    *ret_len = len;
    return len > 0;
}

static void bind_text(sqlite3_stmt *insert, int column, struct weir_slice text)
{
    const char *bytes = text.len > 0 ? (const char *)text.ptr : "";

    (void)sqlite3_bind_text64(insert, column, bytes, text.len, SQLITE_STATIC,
                              SQLITE_UTF8); /* what is not bound is refused */
}

static void bind(struct archive *archive, const struct weir_job *job,
                 const struct weir_origin *origin, size_t json_len)
{
    struct weir_counters counters = weir_job_counters(job);
    sqlite3_stmt *insert = archive->insert;
    struct weir_slice url = weir_job_url(job);
    const int64_t numbers[] = {
        origin->attempts, counters.failures, counters.timeouts,
        counters.crashes, counters.snoozes,
    };

    bind_text(insert, 1, origin->topic);
    bind_text(insert, 2, origin->id);
    (void)sqlite3_bind_int64(insert, 3, (int64_t)origin->token);
    (void)sqlite3_bind_int64(insert, 4, origin->died_ms);
    bind_text(insert, 5, origin->reason);
    bind_text(insert, 6, origin->error);
    for (int i = 0; i < 5; i++)
        (void)sqlite3_bind_int64(insert, 7 + i, numbers[i]);
    if (url.len > 0)
        bind_text(insert, 12, url);
    bind_text(insert, 13,
              (struct weir_slice){(const uint8_t *)archive->json, json_len});
}

/* A worker that is short of memory or descriptors costs no attempt. */
static bool is_short(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff, cause = sqlite3_system_errno(db);

    return code == SQLITE_NOMEM ||
           (code == SQLITE_CANTOPEN && (cause == EMFILE || cause == ENFILE));
}

static enum weir_verdict retry(struct archive *archive, struct weir_job *job)
{
    char why[200];

    archive->was_short = is_short(archive->db);
    if (archive->was_short)
        return weir_snooze(job, BUSY_MS);
    (void)snprintf(why, sizeof(why), "archive: %s",
                   sqlite3_errmsg(archive->db)); /* cut */
    return weir_retry(job, why);
}

/* The first row of a turn opens its transaction. */
static enum weir_verdict begin(struct archive *archive, struct weir_job *job)
{
    int rc = SQLITE_OK;

    if (sqlite3_get_autocommit(archive->db) != 0)
        rc = sqlite3_exec(archive->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_BUSY)
        return weir_snooze(job, BUSY_MS);
    return rc == SQLITE_OK ? WEIR_DONE : retry(archive, job);
}

static enum weir_verdict write_row(struct archive *archive,
                                   struct weir_job *job,
                                   const struct weir_origin *origin)
{
    enum weir_verdict verdict = WEIR_DONE;
    size_t json_len;

    if (!read_body(archive, job, &json_len))
        return weir_snooze(job, BUSY_MS); /* out of memory */
    bind(archive, job, origin, json_len);
    if (sqlite3_step(archive->insert) != SQLITE_DONE) {
        archive->has_failed = true; /* the transaction may be gone by itself */
        verdict = retry(archive, job);
    }
    (void)sqlite3_reset(archive->insert); /* fails as the step did */
    (void)sqlite3_clear_bindings(archive->insert);
    return verdict;
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct archive *archive = self;
    struct weir_origin origin;
    enum weir_verdict verdict;

    if (!weir_job_origin(job, &origin))
        return weir_fail(job, "archive: the job did not come by on_dead");
    if (archive->has_failed)
        return archive->was_short
                   ? weir_snooze(job, BUSY_MS)
                   : weir_retry(job, "archive: an earlier row failed");
    verdict = begin(archive, job);
    return verdict == WEIR_DONE ? write_row(archive, job, &origin) : verdict;
}

static int flush(void *self)
{
    struct archive *archive = self;
    bool is_open = sqlite3_get_autocommit(archive->db) == 0;
    bool has_failed = archive->has_failed;

    archive->has_failed = false;
    if (!has_failed && is_open) {
        has_failed =
            sqlite3_exec(archive->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
        archive->was_short = has_failed && is_short(archive->db);
    }
    if (!has_failed)
        return 0;
    if (sqlite3_get_autocommit(archive->db) == 0)
        (void)sqlite3_exec(archive->db, "ROLLBACK", NULL, NULL, NULL);
    return archive->was_short ? WEIR_SNOOZE : WEIR_ESYSTEM;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "archive",
    .version = WEIR_VERSION,
    .summary = "Keeps dead jobs as rows of an SQLite database.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_archive,
    .run = run,
    .flush = flush,
    .close = close_archive,
};
