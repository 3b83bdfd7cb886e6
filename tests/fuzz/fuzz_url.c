/* SPDX-License-Identifier: MIT */

/* Any text as a server's address: what is taken is printed without its login
 * and read again. */

#include <string.h>

#include "adapters/redis/url.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct weir__redis_url url, again;
    struct weir_error err = {0};
    char shown[1024];
    int code = weir__redis_url_parse(text, &url, &err);

    FUZZ_TRUE((code == WEIR_OK) == (err.text[0] == '\0'));
    if (code == WEIR_OK) {
        url.user[0] = '\0'; /* for people: no address has it alone */
        weir__redis_url_print(&url, shown, sizeof(shown));
        FUZZ_TRUE(strlen(shown) < sizeof(shown) - 1);
        FUZZ_TRUE(weir__redis_url_parse(shown, &again, NULL) == WEIR_OK);
        FUZZ_TRUE(strcmp(url.host, again.host) == 0 && url.db == again.db &&
                  url.port == again.port && url.is_unix == again.is_unix);
        FUZZ_TRUE(again.password[0] == '\0');
    }
    free(text);
    return 0;
}
