/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_API_H
#define WEIR_WEB_API_H

/* The interface for programs, under /api: what the page reads and does.
 * docs/web.md lists it. Every answer is a JSON object; of what went wrong
 * {"error": SENTENCE}. */

#include "adapters/cli/output.h"
#include "adapters/web/web.h"

enum {
    WEIR__API_PAGE = 100,
    WEIR__API_PAGE_MAX = 1000
}; /* rows in an answer */

/* Answer with an object, which is taken; NULL: 500, no memory. */
void weir__api_answer(struct weir__http_request *request,
                      struct json_object *object);

/* The same with an ETag: 304 where the client has it. */
void weir__api_answer_tagged(struct weir__http_request *request,
                             struct json_object *object);

/* Say why a request to the server came to `code`, which is not WEIR_OK. `text`
 * is a sentence that says more; NULL or "": the usual one. */
void weir__api_refuse(struct weir__http_request *request, int code,
                      const char *text);

/* The number behind ?name=, within 0 and `max`; `otherwise` where there is
 * none. False: it is no such number, and the request is answered. */
bool weir__api_number(struct weir__http_request *request, const char *name,
                      size_t max, size_t otherwise, size_t *ret_number);

/* The object in the body of a POST; an empty body is an empty object. Members
 * beside those `known` (the last is NULL) are refused, so that nothing that is
 * misspelt is left out; NULL: any. Put by the caller. NULL: the request is
 * answered. */
struct json_object *weir__api_body(struct weir__http_request *request,
                                   const char *const *known);

/* The text of a member; NULL: there is none, or it is no text. Borrowed. */
const char *weir__api_text(struct json_object *object, const char *name);

/* What is asked for, by the part of the path behind the topic's name; NULL: no
 * more part. Each answers, now or later. `topic` is one that is known and is
 * copied where it is used later. */
typedef void weir__api_fn(struct weir__web *web,
                          struct weir__http_request *request,
                          const char *topic);

/* --- api_topics.c --- */
void weir__api_topics(struct weir__http_request *request, void *web);
void weir__api_history(struct weir__http_request *request, void *web);
weir__api_fn weir__api_topic, weir__api_options;

/* --- api_nodes.c --- */
void weir__api_nodes(struct weir__http_request *request, void *web);

/* --- api_workers.c --- */
void weir__api_workers(struct weir__http_request *request, void *web);

/* --- api_jobs.c --- */
weir__api_fn weir__api_jobs, weir__api_job;

/* --- api_groups.c --- */
weir__api_fn weir__api_groups;

/* --- api_act.c --- */
weir__api_fn weir__api_pause, weir__api_resume, weir__api_set;
weir__api_fn weir__api_job_act;

/* --- api_bulk.c --- */
weir__api_fn weir__api_bulk;

#endif
