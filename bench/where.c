/* SPDX-License-Identifier: MIT */
#include "bench/where.h"

#include "core/error.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { TEXT = 160 };

/* Leave out what is not known. */
static void put(struct json_object *object, const char *name, const char *text)
{
    if (text[0] != '\0')
        (void)json_object_object_add(object, name,
                                     json_object_new_string(text));
}

/* --- the machine ------------------------------------------------------ */

/* What follows the colon in the first line that begins with `name`. */
static void line_of(const char *path, const char *name, char *buf, size_t cap)
{
    FILE *file = fopen(path, "r");
    char line[256];

    buf[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, name, strlen(name)) != 0 || colon == NULL)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        (void)snprintf(buf, cap, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file != NULL)
        (void)fclose(file);
}

/* The first line of a file, or so many words of it. */
static void words_of(const char *path, int words, char *buf, size_t cap)
{
    FILE *file = fopen(path, "r");

    buf[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(buf, (int)cap, file) == NULL)
        buf[0] = '\0';
    (void)fclose(file);
    buf[strcspn(buf, "\n")] = '\0';
    for (char *at = buf; *at != '\0'; at++) {
        if (*at == ' ' && --words == 0)
            *at = '\0';
    }
}

static void put_memory(struct json_object *host)
{
    char text[TEXT];

    line_of("/proc/meminfo", "MemTotal", text, sizeof(text));
    if (text[0] != '\0')
        (void)json_object_object_add(
            host, "memory_mb",
            json_object_new_int64(strtoll(text, NULL, 10) / 1024));
}

static struct json_object *describe_host(void)
{
    struct json_object *host = json_object_new_object();
    struct utsname name = {0};
    char text[TEXT];

    line_of("/proc/cpuinfo", "model name", text, sizeof(text));
    put(host, "cpu", text[0] != '\0' ? text : "unknown");
    (void)json_object_object_add(
        host, "cores", json_object_new_int64(sysconf(_SC_NPROCESSORS_ONLN)));
    (void)uname(&name); /* cannot fail */
    (void)snprintf(text, sizeof(text), "%.64s %.64s", name.sysname,
                   name.release);
    put(host, "kernel", text);
    put(host, "arch", name.machine);
    put_memory(host);
    words_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", 1, text,
             sizeof(text));
    put(host, "governor", text);
    words_of("/proc/loadavg", 3, text, sizeof(text));
    put(host, "load", text);
    return host;
}

/* --- server and build ------------------------------------------------- */

static struct json_object *describe_server(struct bench_server *server)
{
    static const char *const settings[] = {
        "appendonly", "appendfsync",      "save",      "io-threads",
        "maxmemory",  "maxmemory-policy", "databases", "hz"};
    struct json_object *object = json_object_new_object();
    struct json_object *set = json_object_new_object();
    char text[TEXT];

    put(object, "name", server->name);
    put(object, "version", server->version);
    bench_server_info_text(server, "memory", "mem_allocator", text,
                           sizeof(text));
    put(object, "allocator", text);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        bench_server_setting(server, settings[i], text, sizeof(text));
        put(set, settings[i], text);
    }
    (void)json_object_object_add(object, "settings", set);
    return object;
}

static struct json_object *describe_build(void)
{
    struct json_object *build = json_object_new_object();

    put(build, "compiler", WEIR_BENCH_COMPILER);
    put(build, "type", WEIR_BENCH_BUILD);
    put(build, "weir", WEIR_VERSION);
    put(build, "commit", bench_where_commit);
    return build;
}

int bench_where_describe(struct bench *bench, struct weir_error *err)
{
    struct bench_output *output = &bench->output;

    if (output->server != NULL)
        return WEIR_OK; /* as before */
    output->host = describe_host();
    output->server = describe_server(&bench->server);
    output->build = describe_build();
    if (output->host != NULL && output->server != NULL && output->build != NULL)
        return WEIR_OK;
    return weir__error_set(err, WEIR_ENOMEM, "out of memory");
}
