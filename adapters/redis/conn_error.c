/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/conn_private.h"

static const struct {
    const char *code;
    enum weir__error_class class;
} classes[] = {
    {"NOSCRIPT", WEIR__ERROR_NOSCRIPT},
    {"LOADING", WEIR__ERROR_TURNED_AWAY},
    {"MASTERDOWN", WEIR__ERROR_TURNED_AWAY},
    {"READONLY", WEIR__ERROR_TURNED_AWAY},
    {"BUSY", WEIR__ERROR_TURNED_AWAY},
    {"NOAUTH", WEIR__ERROR_TURNED_AWAY},
};

static bool begins_with_code(const char *text, const char *code)
{
    size_t len = strlen(code);

    return strncmp(text, code, len) == 0 &&
           (text[len] == ' ' || text[len] == '\0');
}

/* Redis 6.2 hides the code of an error inside a script:
 * "ERR Error running script (call to f_<sha>): @user_script:1: -READONLY ..."
 */
static const char *inner_code(const char *text)
{
    const char *inner = NULL;

    if (strncmp(text, "ERR Error running script", 24) == 0)
        inner = strstr(text, ": -");
    return inner != NULL ? inner + 3 : text;
}

enum weir__error_class weir__error_classify(const char *text)
{
    const char *code = inner_code(text);

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (begins_with_code(code, classes[i].code))
            return classes[i].class;
    return WEIR__ERROR_OTHER;
}
