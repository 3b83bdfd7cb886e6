/* SPDX-License-Identifier: MIT */
#include "adapters/cli/line_reader.h"

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 256 * 1024, LINE_LEN_MAX = 64 * 1024 * 1024 };

/* What was taken makes room. */
static void make_room(struct weir__line_reader *reader)
{
    size_t left = reader->text.len - reader->taken;

    WEIR_ASSERT(reader->taken <= reader->searched);
    if (left > 0)
        memmove(reader->text.ptr, reader->text.ptr + reader->taken, left);
    reader->text.len = left;
    reader->searched -= reader->taken;
    reader->taken = 0;
}

static int give_up(struct weir__line_reader *reader)
{
    reader->is_ended = true;
    reader->text.len = reader->taken; /* half a line is none */
    reader->searched = reader->taken;
    return WEIR_ESYSTEM;
}

int weir__line_reader_fill(struct weir__line_reader *reader,
                           struct weir_error *err)
{
    uint8_t *room;
    ssize_t len;

    make_room(reader);
    room = weir__buf_reserve(&reader->text, READ_SIZE);
    if (room == NULL) {
        (void)give_up(reader);
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    }
    len = read(reader->fd, room, READ_SIZE);
    if (len > 0) {
        reader->text.len += (size_t)len;
        reader->read += (uint64_t)len;
    } else if (len == 0) {
        reader->is_ended = true;
    } else if (errno != EINTR && errno != EAGAIN) {
        (void)weir__error_set(err, WEIR_ESYSTEM, "%s", strerror(errno));
        return give_up(reader);
    }
    return WEIR_OK;
}

/* There is no newline: is the line too long, or just not complete? */
static enum weir__line_result refuse(struct weir__line_reader *reader)
{
    bool is_long = reader->text.len - reader->taken > LINE_LEN_MAX;

    reader->searched = reader->text.len;
    if (reader->is_skipping || is_long)
        reader->taken = reader->text.len;
    if (reader->is_skipping || !is_long)
        return WEIR__LINE_NONE;
    reader->is_skipping = true;
    reader->line++;
    return WEIR__LINE_TOO_LONG;
}

enum weir__line_result weir__line_reader_next(struct weir__line_reader *reader,
                                              struct weir_slice *ret_line)
{
    while (reader->taken < reader->text.len) {
        const uint8_t *start = reader->text.ptr + reader->taken;
        size_t len = reader->text.len - reader->taken;
        const uint8_t *end = memchr(reader->text.ptr + reader->searched, '\n',
                                    reader->text.len - reader->searched);

        if (end == NULL && (!reader->is_ended || reader->is_skipping))
            return refuse(reader);
        if (end != NULL)
            len = (size_t)(end - start);
        reader->taken += len + (end != NULL ? 1 : 0);
        reader->searched = reader->taken;
        if (reader->is_skipping) {
            reader->is_skipping = false;
            continue;
        }
        reader->line++;
        *ret_line = weir__slice_of(start, len);
        return WEIR__LINE_GOOD;
    }
    return WEIR__LINE_NONE;
}

void weir__line_reader_fini(struct weir__line_reader *reader)
{
    weir__buf_fini(&reader->text);
}
