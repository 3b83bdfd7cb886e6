/* SPDX-License-Identifier: MIT */

/* Any text as the option `allow`, and what follows its first NUL as a host: an
 * address is allowed in both of its forms or in none, and a link-local one only
 * by words that can name it. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "plugins/notify.h"
#include "tests/fuzz/fuzz.h"

static bool has(const struct allow *allow, const char *host, const char *v4)
{
    struct sockaddr_in plain = {.sin_family = AF_INET};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    const void *one = &plain, *other = &mapped;
    uint8_t *bytes = mapped.sin6_addr.s6_addr;
    bool answer;

    FUZZ_TRUE(inet_pton(AF_INET, v4, &plain.sin_addr) == 1);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, &plain.sin_addr, 4);
    answer = allow_has(allow, host, one);
    FUZZ_TRUE(answer == allow_has(allow, host, other));
    return answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), fault[200] = "";
    const char *host = text + strlen(text);
    struct allow *allow = allow_new(text, fault, sizeof(fault));

    if (host < text + size)
        host++;
    if (allow == NULL) {
        FUZZ_TRUE(strncmp(fault, "option \"allow\": \"", 17) == 0);
    } else {
        (void)has(allow, host, "10.0.0.1");
        FUZZ_TRUE(!has(allow, host, "169.254.7.7") || strchr(text, ':') ||
                  strstr(text, "169.254") != NULL);
        FUZZ_TRUE(!has(allow, "", "224.0.0.1") || !allow_is_given(allow) ||
                  strpbrk(text, ".:") != NULL);
    }
    allow_free(allow);
    free(text);
    return 0;
}
