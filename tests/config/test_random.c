/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/config/files.h"

static const char good[] =
    "redis { url = \"redis://h:1\" } # c\n"
    "worker { plugin_path = { a, 'b', } log_level = info } // d\n"
    "topic \"a.b\" { options = { \"x=\\\"1\\\"\" } /* e */ retry = \"1s 2s\"\n"
    "  retry_jitter = 10% ttl = none max_body = 1KiB on_dead = c }\n"
    "topic c { concurrency = 5 }\n";

/* What is put in: bytes and words on which a scanner may trip. */
static const char *const pieces[] = {"\"",
                                     "'",
                                     "\\",
                                     "${",
                                     "${HOME}",
                                     "{",
                                     "}",
                                     "=",
                                     ",",
                                     "#",
                                     "//",
                                     "/*",
                                     "*/",
                                     "*",
                                     "\n",
                                     "\r",
                                     "+=",
                                     "(",
                                     ")",
                                     "|",
                                     "\x01",
                                     " ",
                                     "\"redis|url\"",
                                     "redis",
                                     "topic",
                                     "include",
                                     "\\777",
                                     "\\\n",
                                     "1",
                                     "none",
                                     "\xFF",
                                     "topic=a|",
                                     "\"\\\001",
                                     "{ } "};

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Puts a piece over or between the bytes of the text, or cuts it there. */
static size_t change(char *text, size_t len, uint64_t *state)
{
    size_t count = sizeof(pieces) / sizeof(pieces[0]);
    const char *piece = pieces[next(state) % count];
    size_t piece_len = strlen(piece);
    size_t at = (size_t)(next(state) % (len + 1));
    uint64_t how = next(state) % 8;

    if (how == 0)
        return at;
    if (how < 4 && at + piece_len <= len) {
        memcpy(text + at, piece, piece_len);
        return len;
    }
    memmove(text + at + piece_len, text + at, len - at);
    memcpy(text + at, piece, piece_len);
    return len + piece_len;
}

TEST(a_file_changed_at_random_is_read_or_refused_with_a_sentence)
{
    uint64_t state = 88172645463325252U;
    int refused = 0;

    for (int i = 0; i < 4000; i++) {
        struct weir__config *config = NULL;
        char text[sizeof(good) + 100];
        size_t len = sizeof(good) - 1;

        memcpy(text, good, sizeof(good));
        for (uint64_t n = next(&state) % 4; n < 4; n++)
            len = change(text, len, &state);
        write_bytes(text, len);
        if (read_config("w.conf", &config) != WEIR_OK) {
            EXPECT_MEM("w.conf:", 7, told, 7);
            refused++;
        }
        weir__config_free(config);
        config = config_of(good);
        EXPECT_INT(2, config->topic_count);
        weir__config_free(config);
    }
    EXPECT_TRUE(refused > 2000);
}
