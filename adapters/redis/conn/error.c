/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/error.h"

#include <stddef.h>
#include <string.h>

struct meaning {
    const char *text;
    enum weir__error_class class;
};

static const struct meaning codes[] = {
    {"NOSCRIPT", WEIR__ERROR_NOSCRIPT},
    {"LOADING", WEIR__ERROR_TURNED_AWAY},
    {"MASTERDOWN", WEIR__ERROR_TURNED_AWAY},
    {"READONLY", WEIR__ERROR_TURNED_AWAY},
    {"BUSY", WEIR__ERROR_TURNED_AWAY},
    {"UNBLOCKED", WEIR__ERROR_TURNED_AWAY},
    {"MOVED", WEIR__ERROR_CLUSTER},
    {"ASK", WEIR__ERROR_CLUSTER},
    {"TRYAGAIN", WEIR__ERROR_CLUSTER},
    {"CLUSTERDOWN", WEIR__ERROR_CLUSTER},
    {"NOAUTH", WEIR__ERROR_NOAUTH},
    {"OOM", WEIR__ERROR_FULL},
    {"MISCONF", WEIR__ERROR_REFUSED},
    {"NOREPLICAS", WEIR__ERROR_REFUSED},
    {"WRONGPASS", WEIR__ERROR_NOAUTH},
    {"NOPERM", WEIR__ERROR_DENIED},
    {"NOPROTO", WEIR__ERROR_DENIED},
    {"DENIED", WEIR__ERROR_DENIED}, /* protected mode */
    {"CROSSSLOT", WEIR__ERROR_MISTAKE},
    {"WRONGTYPE", WEIR__ERROR_MISTAKE},
    {"EXECABORT", WEIR__ERROR_MISTAKE},
    {NULL, WEIR__ERROR_OTHER},
};

/* What has no code of its own in scripts. */
static const struct meaning phrases[] = {
    {"The user executing the script can't", WEIR__ERROR_DENIED}, /* to 7.0 */
    {"ACL failure in script", WEIR__ERROR_DENIED},
    {"attempted to access a non local key", WEIR__ERROR_MISTAKE},
    {NULL, WEIR__ERROR_OTHER},
};

static enum weir__error_class class_of_code(const char *text)
{
    const struct meaning *known = codes;

    for (; known->text != NULL; known++) {
        size_t len = strlen(known->text);

        if (strncmp(text, known->text, len) == 0 &&
            (text[len] == ' ' || text[len] == '\0'))
            break;
    }
    return known->class;
}

/* Redis 6.2 hides the code of an error inside a script:
 * "ERR Error running script (call to f_<sha>): @user_script:1: -READONLY ..."
 */
const char *weir__error_core(const char *text)
{
    const char *core = text;

    if (strncmp(text, "ERR Error running script", 24) != 0)
        return text;
    while ((core = strstr(core, ": -")) != NULL) {
        core += 3;
        if (class_of_code(core) != WEIR__ERROR_OTHER)
            return core;
    }
    return text;
}

const char *weir__error_words(const char *text)
{
    return weir__error_classify(text) == WEIR__ERROR_FULL
               ? "the server is full: raise its maxmemory, or have jobs worked "
                 "off"
               : weir__error_core(text);
}

bool weir__error_is_cross_slot(const char *text)
{
    return strncmp(text, "CROSSSLOT", 9) == 0;
}

bool weir__error_is_no_database(const char *text)
{
    return strncmp(text, "ERR SELECT is not allowed in cluster mode", 41) == 0;
}

bool weir__error_is_no_cluster(const char *text)
{
    return strstr(text, "cluster support disabled") != NULL;
}

bool weir__error_hides_cluster(const char *text)
{
    return weir__error_is_no_cluster(text) || strncmp(text, "NOPERM", 6) == 0 ||
           strstr(text, "unknown command") != NULL;
}

enum weir__error_class weir__error_classify(const char *text)
{
    enum weir__error_class class = class_of_code(weir__error_core(text));
    const struct meaning *phrase = phrases;

    if (strncmp(text, "ERR ", 4) != 0 || class != WEIR__ERROR_OTHER)
        return class;
    while (phrase->text != NULL && strstr(text, phrase->text) == NULL)
        phrase++;
    return phrase->class;
}
