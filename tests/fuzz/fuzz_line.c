/* SPDX-License-Identifier: MIT */

/* Any text as a line of `weir add --jsonl` and as what `weir run --handle` is
 * given: it is taken and checked, or refused. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "adapters/cli/new_job.h"
#include "adapters/cli/plugin_path.h"
#include "adapters/msgpack/scan.h"
#include "tests/fuzz/fuzz.h"

static void read_line(const uint8_t *data, size_t size)
{
    struct weir__job_line line = {0};
    struct weir_error err = {0};
    int code = weir__job_line_read(&line, weir__slice_of(data, size), &err);

    FUZZ_TRUE((code == WEIR_OK) == (err.text[0] == '\0'));
    if (code == WEIR_OK) {
        FUZZ_TRUE(line.job.body.len == 0 ||
                  weir__msgpack_check(line.job.body) == WEIR_OK);
        FUZZ_TRUE(line.job.id == NULL ||
                  weir__id_check(weir__slice_str(line.job.id), NULL) ==
                      WEIR_OK);
        FUZZ_TRUE(line.job.group == NULL ||
                  weir__group_is_sound(weir__slice_str(line.job.group)));
        FUZZ_TRUE(line.job.delay_ms >= 0 && line.job.at_ms >= 0 &&
                  line.job.ttl_ms >= 0);
    }
    weir__job_line_fini(&line);
}

static void read_handle(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct weir__handle handle;

    if (weir__handle_parse(text, &handle)) {
        FUZZ_TRUE(weir__topic_check(weir__slice_str(handle.topic), NULL) ==
                  WEIR_OK);
        for (size_t i = 0; i < handle.option_count; i++)
            FUZZ_TRUE(strchr(handle.options[i], '=') != NULL);
        weir__handle_fini(&handle);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_line(data, size);
    read_handle(data, size);
    return 0;
}
