/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/redirect.h"

#include <string.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/conn/error.h"
#include "core/text.h"

static const struct {
    const char *code;
    enum weir__redirect_kind kind;
} codes[] = {
    {"MOVED", WEIR__REDIRECT_MOVED},
    {"ASK", WEIR__REDIRECT_ASK},
    {"TRYAGAIN", WEIR__REDIRECT_TRYAGAIN},
    {"CLUSTERDOWN", WEIR__REDIRECT_DOWN},
    {"CROSSSLOT", WEIR__REDIRECT_CROSSSLOT},
};

/* Up to the next `end`; what follows it is left in `text`. */
static struct weir_slice take_word(const char **text, char end)
{
    const char *from = *text;
    size_t len = 0;

    while (from[len] != '\0' && from[len] != end)
        len++;
    *text = from + len + (from[len] != '\0');
    return weir__slice_of(from, len);
}

/* Digits alone, up to `most`. */
static bool read_number(struct weir_slice digits, int64_t most,
                        int64_t *ret_value)
{
    int64_t value = 0;

    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return false;
        value = value * 10 + (digits.ptr[i] - '0');
        if (value > most)
            return false;
    }
    *ret_value = value;
    return digits.len > 0;
}

/* "3999 host:port": the last colon, since an IPv6 address has some. */
static bool read_target(const char *text, const struct weir__redis_host *asked,
                        struct weir__redirect *redirect)
{
    struct weir_slice digits = take_word(&text, ' ');
    const char *colon = strrchr(text, ':');
    int64_t slot, port;

    if (colon == NULL || !read_number(digits, WEIR__CLUSTER_SLOTS - 1, &slot) ||
        !read_number(weir__slice_str(colon + 1), UINT16_MAX, &port) ||
        weir__endpoint_read(weir__slice_of(text, (size_t)(colon - text)), port,
                            asked, &redirect->host) != WEIR__ENDPOINT_KNOWN)
        return false;
    redirect->slot = (uint16_t)slot;
    return true;
}

struct weir__redirect weir__redirect_read(const char *text,
                                          const struct weir__redis_host *asked)
{
    struct weir__redirect redirect = {.kind = WEIR__REDIRECT_NONE};
    struct weir_slice code;

    text = weir__error_core(text);
    code = take_word(&text, ' ');
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (weir__slice_equal(code, weir__slice_str(codes[i].code)))
            redirect.kind = codes[i].kind;
    if (redirect.kind == WEIR__REDIRECT_MOVED ||
        redirect.kind == WEIR__REDIRECT_ASK)
        redirect.has_target = read_target(text, asked, &redirect);
    return redirect;
}
