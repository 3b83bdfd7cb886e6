/* SPDX-License-Identifier: MIT */

/* /metrics of weir web: what the topics have, from the snapshot that the page
 * shows too. A request has a round of it begin and waits for its end, 5 s at
 * most; whoever asks within a second of that gets the same bytes. */

#include "adapters/web/exposition.h"
#include "adapters/web/metrics_workers.h"
#include "adapters/web/web.h"

#include "core/assert.h"
#include "core/mem.h"

#include <string.h>

static const double FRESH_S = 1.0, PATIENCE_S = 5.0;

/* Requests that wait for the round. */
struct waiting {
    struct waiting *next;
    struct weir__http_request *request;
};

struct weir__metrics {
    struct weir__web *web;
    struct weir__worker_rows *workers; /* owned */
    struct waiting *first;             /* owned */
    struct ev_timer limit;
    struct weir__http_content *content; /* NULL: none yet */
    double made_s;
};

/* --- families ----------------------------------------------------------- */

struct topics {
    struct weir__topic_view *const *list;
    size_t count;
};

typedef void (*sample_fn)(struct weir__exposition *text,
                          const struct weir__stats_row *row);

/* One family: what `fn` says of each topic that is there. */
static void of_topics(struct weir__exposition *text,
                      const struct topics *topics, sample_fn fn)
{
    for (size_t i = 0; i < topics->count; i++) {
        const struct weir__stats_row *row = &topics->list[i]->row;

        if (!row->is_shown)
            continue;
        weir__label(text, 0, "topic", row->topic);
        fn(text, row);
    }
}

static void kind(struct weir__exposition *text,
                 const struct weir__stats_row *row)
{
    weir__label(text, 1, "kind", row->kind);
    weir__sample(text, 1);
}

static void up(struct weir__exposition *text, const struct weir__stats_row *row)
{
    weir__sample(text, row->is_away ? 0 : 1);
}

static void paused(struct weir__exposition *text,
                   const struct weir__stats_row *row)
{
    weir__sample(text, row->stats.paused ? 1 : 0);
}

static void numbered(struct weir__exposition *text, const char *label,
                     const char *value, uint64_t number)
{
    weir__label(text, 1, label, value);
    weir__sample(text, number);
}

static void jobs(struct weir__exposition *text,
                 const struct weir__stats_row *row)
{
    numbered(text, "state", "scheduled", row->stats.scheduled);
    numbered(text, "state", "ready", row->stats.ready);
    numbered(text, "state", "running", row->stats.running);
    numbered(text, "state", "dead", row->stats.dead);
}

static void limited(struct weir__exposition *text,
                    const struct weir__stats_row *row)
{
    const enum weir_limit by = row->stats.limited;

    if (strcmp(row->kind, "delay") != 0)
        return;
    numbered(text, "by", "rate", by == WEIR_LIMITED_RATE);
    numbered(text, "by", "parallel", by == WEIR_LIMITED_PARALLEL);
    numbered(text, "by", "key", by == WEIR_LIMITED_KEY);
}

static void oldest(struct weir__exposition *text,
                   const struct weir__stats_row *row)
{
    if (row->stats.oldest_us >= 0)
        weir__sample_us(text, row->stats.oldest_us);
}

static void lease_ended(struct weir__exposition *text,
                        const struct weir__stats_row *row)
{
    if (row->stats.lease_ended_us >= 0)
        weir__sample_us(text, row->stats.lease_ended_us);
}

static void workers(struct weir__exposition *text,
                    const struct weir__stats_row *row)
{
    if (row->workers >= 0)
        weir__sample(text, (uint64_t)row->workers);
}

static void unserved(struct weir__exposition *text,
                     const struct weir__stats_row *row)
{
    if (strcmp(row->kind, "bounded") == 0 && row->stats.unserved >= 0)
        weir__sample(text, (uint64_t)row->stats.unserved);
}

static void relaying(struct weir__exposition *text,
                     const struct weir__stats_row *row)
{
    weir__sample(text, row->stats.relaying);
}

static void added(struct weir__exposition *text,
                  const struct weir__stats_row *row)
{
    weir__sample(text, row->stats.added_total);
}

static void outcomes(struct weir__exposition *text,
                     const struct weir__stats_row *row)
{
    numbered(text, "outcome", "done", row->stats.done_total);
    numbered(text, "outcome", "retried", row->stats.retried_total);
    numbered(text, "outcome", "failed", row->stats.failed_total);
    numbered(text, "outcome", "expired", row->stats.expired_total);
    numbered(text, "outcome", "crashed", row->stats.crashed_total);
    numbered(text, "outcome", "lost", row->stats.lost_total);
}

static void drops(struct weir__exposition *text,
                  const struct weir__stats_row *row)
{
    if (strcmp(row->kind, "bounded") != 0)
        return;
    numbered(text, "reason", "overflow", row->stats.dropped_overflow);
    numbered(text, "reason", "age", row->stats.dropped_age);
    numbered(text, "reason", "ttl", row->stats.dropped_ttl);
}

static void lateness(struct weir__exposition *text,
                     const struct weir__stats_row *row)
{
    const struct weir_stats *stats = &row->stats;

    if (stats->lateness_max_us < 0)
        return;
    weir__label(text, 1, "quantile", "0.5");
    weir__sample_us(text, stats->lateness_p50_us);
    weir__label(text, 1, "quantile", "0.99");
    weir__sample_us(text, stats->lateness_p99_us);
    weir__label(text, 1, "quantile", "1");
    weir__sample_us(text, stats->lateness_max_us);
}

static const struct {
    const char *name, *type, *help;
    sample_fn fn;
} families[] = {
    {"weir_topic_info", "gauge", "Of which kind a topic is.", kind},
    {"weir_topic_up", "gauge", "Whether the topic's server tells of it.", up},
    {"weir_topic_paused", "gauge", "Whether the topic is paused.", paused},
    {"weir_topic_limited", "gauge",
     "Whether ready jobs wait for a rate or until others end.", limited},
    {"weir_topic_jobs", "gauge", "Jobs of a topic by their state.", jobs},
    {"weir_topic_oldest_ready_seconds", "gauge",
     "How long the first of the ready jobs has been ready.", oldest},
    {"weir_topic_lease_ended_seconds", "gauge",
     "For how long the first of the ended leases with jobs has been over.",
     lease_ended},
    {"weir_topic_workers", "gauge", "Workers that serve a topic.", workers},
    {"weir_topic_unserved_groups", "gauge",
     "Groups of a bounded topic that wait and no worker serves.", unserved},
    {"weir_topic_relaying", "gauge",
     "Packs of jobs on their way to other topics.", relaying},
    {"weir_topic_added_total", "counter", "Jobs that were added.", added},
    {"weir_topic_outcomes_total", "counter", "What became of jobs.", outcomes},
    {"weir_topic_dropped_total", "counter",
     "Events that a bounded topic gave up.", drops},
    {"weir_topic_lateness_seconds", "summary",
     "How late jobs started in the last 5 minutes.", lateness},
};

/* --- what the server says of itself ------------------------------------- */

typedef void (*node_fn)(struct weir__exposition *text,
                        const struct weir__node *node);

static void node_up(struct weir__exposition *text,
                    const struct weir__node *node)
{
    weir__sample(text, node->is_up ? 1 : 0);
}

static void node_role(struct weir__exposition *text,
                      const struct weir__node *node)
{
    weir__sample(text, node->is_primary ? 1 : 0);
}

static void node_replicas(struct weir__exposition *text,
                          const struct weir__node *node)
{
    weir__sample(text, node->replicas);
}

static void node_behind(struct weir__exposition *text,
                        const struct weir__node *node)
{
    weir__sample(text, node->behind_bytes);
}

static void node_memory(struct weir__exposition *text,
                        const struct weir__node *node)
{
    weir__sample(text, node->memory_bytes);
}

static void node_memory_max(struct weir__exposition *text,
                            const struct weir__node *node)
{
    weir__sample(text, node->memory_max_bytes);
}

static void node_evicted(struct weir__exposition *text,
                         const struct weir__node *node)
{
    weir__sample(text, (uint64_t)node->evicted);
}

static const struct {
    const char *name, *type, *help;
    node_fn fn;
} node_families[] = {
    {"weir_server_up", "gauge", "Whether the server, or a primary, answers.",
     node_up},
    {"weir_server_primary", "gauge", "Whether it takes writes.", node_role},
    {"weir_server_replicas", "gauge", "Replicas that are connected.",
     node_replicas},
    {"weir_server_replication_behind_bytes", "gauge",
     "Changes that the last of the replicas has not got yet.", node_behind},
    {"weir_server_memory_bytes", "gauge", "Memory that the server uses.",
     node_memory},
    {"weir_server_memory_max_bytes", "gauge",
     "Memory that it may use; 0: all there is.", node_memory_max},
    {"weir_server_evicted_total", "counter",
     "Keys that it dropped for want of memory.", node_evicted},
};

static void put_nodes(struct weir__exposition *text, struct weir__nodes *nodes)
{
    const size_t kinds = sizeof(node_families) / sizeof(node_families[0]);
    struct weir__node *list;
    size_t count = weir__nodes_list(nodes, &list);

    for (size_t i = 0; i < kinds; i++) {
        weir__family(text, node_families[i].name, node_families[i].type,
                     node_families[i].help);
        for (size_t node = 0; node < count; node++) {
            weir__label(text, 0, "server", list[node].name);
            if (list[node].is_up || i == 0)
                node_families[i].fn(text, &list[node]);
        }
    }
    weir__mem_free(list);
}

/* As /api/topics: not those that were deleted since they were named. */
static uint64_t count_shown(const struct topics *topics)
{
    uint64_t count = 0;

    for (size_t i = 0; i < topics->count; i++)
        count += topics->list[i]->row.is_shown ? 1 : 0;
    return count;
}

static void put_all(struct weir__exposition *text, const struct weir__web *web)
{
    const struct weir__snapshot *snapshot = web->snapshot;
    struct topics topics;

    topics.list = weir__snapshot_topics(snapshot, &topics.count);
    weir__family(text, "weir_build_info", "gauge", "The version of weir web.");
    weir__label(text, 0, "version", WEIR_VERSION);
    weir__sample(text, 1);
    weir__family(text, "weir_up", "gauge",
                 "Whether the server answered the last round of questions.");
    weir__sample(text, weir__snapshot_code(snapshot) == WEIR_OK ? 1 : 0);
    weir__family(text, "weir_snapshot_timestamp_seconds", "gauge",
                 "When the last round was over that the server answered.");
    weir__sample_us(text, weir__snapshot_taken_ms(snapshot) * 1000);
    weir__family(text, "weir_topics", "gauge", "Topics that exist.");
    weir__sample(text, count_shown(&topics));
    put_nodes(text, web->nodes);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        weir__family(text, families[i].name, families[i].type,
                     families[i].help);
        of_topics(text, &topics, families[i].fn);
    }
}

/* --- answers ------------------------------------------------------------ */

static void make(struct weir__metrics *metrics)
{
    struct weir__exposition text = {0};

    put_all(&text, metrics->web);
    weir__worker_rows_put(&text, metrics->workers);
    weir__http_content_free(metrics->content);
    metrics->content = weir__http_content_new(WEIR__EXPOSITION_TYPE, &text.buf);
    metrics->made_s = ev_now(metrics->web->loop);
}

static void answer(struct weir__metrics *metrics,
                   struct weir__http_request *request)
{
    if (metrics->content != NULL)
        weir__http_answer_shared(request, metrics->content);
    else
        weir__http_refuse(request, 503, "out of memory");
}

static void answer_all(struct weir__metrics *metrics)
{
    struct waiting *next;

    WEIR_ASSERT(metrics->web->metrics == metrics);
    ev_timer_stop(metrics->web->loop, &metrics->limit);
    if (metrics->first != NULL)
        make(metrics);
    for (struct waiting *one = metrics->first; one != NULL; one = next) {
        next = one->next;
        answer(metrics, one->request);
        weir__mem_free(one);
    }
    metrics->first = NULL;
}

static void on_round(void *arg)
{
    answer_all(arg);
}

/* So many topics that a round takes longer, or a server that does not answer:
 * what is known is told, and when it was so. */
static void on_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    answer_all(timer->data);
}

static void scrape(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    struct weir__metrics *metrics = web->metrics;
    struct waiting *one;

    WEIR_ASSERT(metrics != NULL && metrics->web == web);
    if (metrics->content != NULL &&
        ev_now(web->loop) - metrics->made_s < FRESH_S) {
        answer(metrics, request);
        return;
    }
    one = weir__mem_new(sizeof(*one));
    if (one == NULL) {
        weir__http_refuse(request, 503, "out of memory");
        return;
    }
    one->request = request;
    one->next = metrics->first;
    metrics->first = one;
    weir__worker_rows_ask(metrics->workers, web->reactor);
    weir__snapshot_look(web->snapshot);
    if (!ev_is_active(&metrics->limit)) {
        ev_timer_set(&metrics->limit, PATIENCE_S, 0.0);
        ev_timer_start(web->loop, &metrics->limit);
    }
}

int weir__web_metrics_open(struct weir__web *web)
{
    struct weir__metrics *metrics = weir__mem_new(sizeof(*metrics));

    WEIR_ASSERT(web->snapshot != NULL && web->nodes != NULL);
    WEIR_ASSERT(web->metrics == NULL);
    if (metrics == NULL)
        return WEIR_ENOMEM;
    metrics->workers = weir__worker_rows_new();
    if (metrics->workers == NULL) {
        weir__mem_free(metrics);
        return WEIR_ENOMEM;
    }
    metrics->web = web;
    ev_timer_init(&metrics->limit, on_limit, PATIENCE_S, 0.0);
    metrics->limit.data = metrics;
    web->metrics = metrics;
    weir__snapshot_on_round(web->snapshot, on_round, metrics);
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_READ, "/metrics", scrape);
    return WEIR_OK;
}

void weir__web_metrics_close(struct weir__web *web)
{
    struct weir__metrics *metrics = web->metrics;

    if (metrics == NULL)
        return;
    weir__snapshot_on_round(web->snapshot, NULL, NULL);
    answer_all(metrics);
    weir__http_content_free(metrics->content);
    weir__worker_rows_free(metrics->workers);
    weir__mem_free(metrics);
    web->metrics = NULL;
}
