/* SPDX-License-Identifier: MIT */

/* Any text as a server's address: what is taken is printed without its login
 * and read again; with its secrets hidden it has stars for a password. */

#include <string.h>

#include "adapters/redis/url.h"
#include "tests/fuzz/fuzz.h"

static void expect_same(const struct weir__redis_url *url,
                        const struct weir__redis_url *again)
{
    FUZZ_TRUE(url->host_count == again->host_count && url->db == again->db &&
              url->is_unix == again->is_unix && url->is_tls == again->is_tls &&
              url->is_sentinel == again->is_sentinel);
    FUZZ_TRUE(strcmp(url->service, again->service) == 0 &&
              strcmp(url->prefix, again->prefix) == 0);
    for (size_t i = 0; i < url->host_count; i++)
        FUZZ_TRUE(strcmp(url->hosts[i].name, again->hosts[i].name) == 0 &&
                  url->hosts[i].port == again->hosts[i].port);
    FUZZ_TRUE(again->password[0] == '\0' && again->ca[0] == '\0');
}

static void expect_stars(char *text, const struct weir__redis_url *url)
{
    struct weir__redis_url hidden;

    weir__redis_url_hide(text);
    if (url == NULL || url->is_unix)
        return;
    FUZZ_TRUE(weir__redis_url_read(text, &hidden, NULL) == WEIR_OK);
    FUZZ_TRUE((url->password[0] == '\0') == (hidden.password[0] == '\0'));
    FUZZ_TRUE(strspn(hidden.password, "*") == strlen(hidden.password));
    FUZZ_TRUE(strspn(hidden.sentinel_password, "*") ==
              strlen(hidden.sentinel_password));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct weir__redis_url url, again;
    struct weir_error err = {0};
    char shown[5000];
    int code = weir__redis_url_read(text, &url, &err);

    FUZZ_TRUE((code == WEIR_OK) == (err.text[0] == '\0'));
    if (code == WEIR_OK) {
        url.user[0] = '\0'; /* for people: no address has it alone */
        weir__redis_url_print(&url, shown, sizeof(shown));
        FUZZ_TRUE(strlen(shown) < sizeof(shown) - 1);
        FUZZ_TRUE(weir__redis_url_read(shown, &again, NULL) == WEIR_OK);
        expect_same(&url, &again);
    }
    expect_stars(text, code == WEIR_OK ? &url : NULL);
    free(text);
    return 0;
}
