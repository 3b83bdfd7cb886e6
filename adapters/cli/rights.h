/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RIGHTS_H
#define WEIR_CLI_RIGHTS_H

/* Every command that weir and its scripts call, in one list: weir doctor looks
 * whether a server allows them, and prints the ACL rule that does. What is
 * called and what is listed are compared by tests/lint/rights.py. */

#include "adapters/config/config.h"
#include "adapters/redis/url.h"
#include "core/buf.h"

enum weir__right_of {
    WEIR__RIGHT_ALWAYS,   /* whatever the topics are */
    WEIR__RIGHT_BOTH,     /* likewise, and at sentinels, which have own users */
    WEIR__RIGHT_SENTINEL, /* at sentinels alone */
    WEIR__RIGHT_LIST,     /* only for topics of kind list */
    WEIR__RIGHT_STREAM,
    WEIR__RIGHT_BEYOND /* asked for, but left out of the rule */
};

struct weir__right {
    /* A command as ACL names it, and arguments with which a server takes it
     * into a transaction: KEY and CHANNEL stand for one of ours. */
    const char *command;
    enum weir__right_of of;
};

/* In the order of the rule, ended by one without a command. */
extern const struct weir__right weir__rights[];

enum { WEIR__RIGHT_NAME_CAP = 40 };

/* "xgroup|create", without arguments. */
void weir__right_name(const struct weir__right *right,
                      char ret_name[WEIR__RIGHT_NAME_CAP]);

/* Append "ACL SETUSER ...": the rule of a user as whom all of weir works, with
 * the topics of kind list and stream that `config` (NULL: none) has; or, if
 * `topic` is not NULL, all that is for this topic, with no other topic's keys.
 * The user is the address's, or weir. WEIR_EINVAL: a name that cannot stand
 * there. */
int weir__rights_rule(struct weir__buf *buf, const struct weir__redis_url *url,
                      const struct weir__config *config, const char *topic,
                      struct weir_error *err);

/* The same for the sentinels of the address. */
int weir__rights_sentinel_rule(struct weir__buf *buf,
                               const struct weir__redis_url *url,
                               struct weir_error *err);

#endif
