/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_DELAY_WIRE_H
#define WEIR_REDIS_DELAY_WIRE_H

/* Names on the server, and the beginnings of commands. */

#include "adapters/redis/delay_private.h"
#include "adapters/redis/resp.h"

/* Write the topic's name and the prefix of its keys. */
void weir__topic_name(struct weir__store_topic *topic, struct weir_slice name);

/* A number that the server writes as text, of up to 18 digits. */
int64_t weir__digits_read(struct weir_slice digits);

/* The channel on which a worker is woken. */
void weir__wake_channel(char *buf, size_t cap, const char *worker);

#endif
