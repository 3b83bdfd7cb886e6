/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_ACT_H
#define WEIR_WEB_ACT_H

/* One action of a reader, from its request to its answer. */

#include "adapters/web/api.h"

struct weir__act {
    struct weir__web *web;
    struct weir__http_request *request;
    struct json_object *result; /* of weir__act_end */
    char topic[WEIR_MAX_TOPIC + 1];
};

/* NULL: no memory, and the request is answered. Ended by one of the others. */
struct weir__act *weir__act_new(struct weir__web *web,
                                struct weir__http_request *request,
                                const char *topic);

/* Have the snapshot know the topic as it is now, then answer with `result`,
 * which is taken; NULL: no memory. */
void weir__act_end(struct weir__act *act, struct json_object *result);

/* As weir__api_refuse. */
void weir__act_fail(struct weir__act *act, int code, const char *text);

#endif
