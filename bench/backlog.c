/* SPDX-License-Identifier: MIT */
#include "bench/backlog.h"

#include "core/error.h"

int bench_backlog_put(struct bench *bench, const struct bench_load *load,
                      const char *topic, struct bench_row *row,
                      struct weir_error *err)
{
    int64_t before = bench_server_info(&bench->server, "memory", "used_memory");
    struct bench_row ignored = *row;
    int64_t due_ns, after;
    int rc = bench_load_fill(bench, load, topic, &ignored, &due_ns, err);

    if (rc < 0)
        return rc;
    after = bench_server_info(&bench->server, "memory", "used_memory");
    row->figure[BENCH_server_bytes_per_job] =
        (double)(after - before) / (double)load->jobs;
    return WEIR_OK;
}

int bench_slow_begin(struct bench *bench, struct weir_error *err)
{
    struct bench_server *server = &bench->server;

    if (!server->is_own)
        return WEIR_OK;
    if (bench_server_ask(server, "CONFIG SET slowlog-log-slower-than 5000") <
            0 ||
        bench_server_ask(server, "CONFIG SET slowlog-max-len 10000") < 0 ||
        bench_server_ask(server, "SLOWLOG RESET") < 0)
        return weir__error_set(err, WEIR_ESERVER,
                               "the server keeps no SLOWLOG for us");
    return WEIR_OK;
}

void bench_slow_count(struct bench *bench, struct bench_row *row)
{
    if (!bench->server.is_own)
        return;
    row->figure[BENCH_slow_commands] =
        (double)bench_server_ask(&bench->server, "SLOWLOG LEN");
    row->figure[BENCH_slowest_ms] = bench_server_slowest_ms(&bench->server);
}
