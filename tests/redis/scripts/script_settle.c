/* SPDX-License-Identifier: MIT */
/* Calls of settle.lua and settle_one.lua, put together piece by piece. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "core/text.h"
#include "tests/redis/scripts/script_fixture.h"

enum { FIRST_PACK_KEY = 11, OF_MIXED = 65536 };

static struct weir__buf nodes_arg, back_arg, closed_arg, moves_arg, ends_arg,
    unstarted_arg;
static size_t node_total, move_total, unstarted_total;
static bool leaves_out; /* jobs of packs that are not staged */
static bool wakes;
static bool has_lanes;
static bool sends; /* a pack is for another topic */

static void settle_node(uint64_t key, const char *node, const void *slots,
                        size_t slot_count)
{
    char name[17] = {0};

    memset(name, node[0], 12);
    memcpy(name + 12, node + 1, 4);
    weir__pack_uint(&nodes_arg, key);
    weir__pack_str(&nodes_arg, name, 16);
    weir__pack_uint(&nodes_arg, strtoull(script_token, NULL, 10));
    weir__pack_uint(&nodes_arg, strtoul(script_header, NULL, 10));
    weir__pack_str(&nodes_arg, slots, slot_count);
    node_total++;
}

/* Name one node: its letter and slots "0003", settled slots or "" for all. */
void script_settle_node(const char *node, const void *slots, size_t slot_count)
{
    settle_node(FIRST_PACK_KEY, node, slots, slot_count);
}

void script_settle_mixed(const char *node, const void *slots, size_t slot_count)
{
    settle_node(OF_MIXED + FIRST_PACK_KEY, node, slots, slot_count);
}

/* The only node that goes back. */
void script_settle_back(const char *node, const void *slots, size_t slot_count,
                        int64_t due_ms)
{
    char name[17] = {0};

    memset(name, node[0], 12);
    memcpy(name + 12, node + 1, 4);
    weir__pack_array(&back_arg, 4);
    weir__pack_str(&back_arg, name, 16);
    weir__pack_uint(&back_arg, strtoull(script_token, NULL, 10));
    weir__pack_uint(&back_arg, (uint64_t)due_ms);
    weir__pack_str(&back_arg, slots, slot_count);
}

static struct weir_slice list_slice(const struct weir__buf *buf)
{
    static const char none[] = "";

    return buf->len == 0 ? weir__slice_of(none, 0) : weir__buf_slice(buf);
}

/* Send what settle_node collected, for packs of one letter. */
const char *script_settle_packs(char letter, const char *moved,
                                const char *most_dead)
{
    struct weir__buf list = {0}, moves = {0}, unstarted = {0};
    struct weir_slice lists[4] = {[0] = list_slice(&back_arg),
                                  [1] = list_slice(&closed_arg),
                                  [3] = list_slice(&ends_arg)};
    const char *answer;

    weir__pack_array(&list, 5 * node_total);
    weir__buf_append(&list, nodes_arg.ptr, nodes_arg.len);
    if (move_total > 0)
        weir__pack_array(&moves, 7 * move_total);
    weir__buf_append(&moves, moves_arg.ptr, moves_arg.len);
    lists[2] = list_slice(&moves);
    script_begin(&weir__script_delay_settle,
                 "run lease ids meta wait dead rec idle held due");
    script_pack_key(letter);
    for (size_t i = 0; moved[i] != '\0'; i++)
        script_pack_key(moved[i]);
    if (sends)
        script_key("relay");
    script_arg("t");
    script_arg_bytes(list.ptr, list.len);
    for (size_t i = 0; i < 4; i++)
        script_arg_bytes(lists[i].ptr, lists[i].len);
    script_arg(most_dead);
    weir__pack_array(&unstarted, unstarted_total);
    weir__buf_append(&unstarted, unstarted_arg.ptr, unstarted_arg.len);
    if (unstarted_total > 0)
        script_arg_bytes(unstarted.ptr, unstarted.len);
    if (leaves_out || wakes || has_lanes || unstarted_total > 0)
        script_arg(leaves_out ? "1" : has_lanes ? "4" : wakes ? "2" : "0");
    answer = script_call();
    weir__buf_fini(&list);
    weir__buf_fini(&moves);
    weir__buf_fini(&unstarted);
    return answer;
}

const char *script_settle(char letter, char moved, const char *most_dead)
{
    return script_settle_packs(letter, (const char[]){moved, '\0'}, most_dead);
}

void script_settle_begin(void)
{
    weir__buf_fini(&nodes_arg);
    weir__buf_fini(&back_arg);
    weir__buf_fini(&closed_arg);
    weir__buf_fini(&moves_arg);
    weir__buf_fini(&ends_arg);
    weir__buf_fini(&unstarted_arg);
    node_total = 0;
    move_total = 0;
    leaves_out = wakes = has_lanes = false;
    unstarted_total = 0;
    sends = false;
}

void script_settle_wakes(void)
{
    wakes = true;
}

void script_settle_unstarted(uint64_t source)
{
    weir__pack_uint(&unstarted_arg, source);
    unstarted_total++;
}

void script_settle_lanes(void)
{
    has_lanes = true;
}

void script_settle_leave_out(void)
{
    leaves_out = true;
}

void script_settle_close(void)
{
    weir__pack_array(&closed_arg, 1);
    weir__pack_uint(&closed_arg, strtoull(script_token, NULL, 10));
}

/* Jobs with sources in node 1 come in a staged pack. */
static void add_pack(size_t key, unsigned form, const char *slots, size_t count,
                     size_t header_len)
{
    weir__pack_uint(&moves_arg, FIRST_PACK_KEY + 1 + key);
    weir__pack_uint(&moves_arg, count);
    weir__pack_uint(&moves_arg, header_len);
    weir__pack_str(&moves_arg, "r0", 2);
    weir__pack_uint(&moves_arg, form);
    weir__pack_array(&moves_arg, count);
    for (size_t i = 0; i < count; i++)
        weir__pack_uint(&moves_arg, (uint64_t)slots[i]);
    move_total++;
}

static void end_pack_here(void)
{
    weir__pack_str(&moves_arg, "", 0);
}

void script_settle_move(size_t slot, size_t header_len)
{
    add_pack(0, 1, (const char[]){(char)slot}, 1, header_len);
    end_pack_here();
}

void script_settle_record(size_t slot, const char *id, const char *when,
                          const char *record)
{
    weir__pack_str(&moves_arg, record, strlen(record));
    weir__pack_uint(&moves_arg, 1);
    weir__pack_str(&moves_arg, id, strlen(id));
    weir__pack_str(&moves_arg, when, strlen(when));
    weir__pack_uint(&moves_arg, 1);
    weir__pack_array(&moves_arg, 1);
    weir__pack_uint(&moves_arg, slot);
    end_pack_here();
    move_total++;
}

void script_settle_send(size_t slot, size_t header_len)
{
    static const char *const target[] = {"one", "delay", "!s"};

    sends = true;
    add_pack(0, 2, (const char[]){(char)slot}, 1, header_len);
    weir__pack_array(&moves_arg, 5);
    for (size_t i = 0; i < 3; i++)
        weir__pack_str(&moves_arg, target[i], strlen(target[i]));
    weir__pack_uint(&moves_arg, 1);
    weir__pack_str(&moves_arg, "", 0);
}

void script_settle_follow(size_t key, const char *slots, size_t count,
                          size_t header_len)
{
    add_pack(key, 2, slots, count, header_len);
    end_pack_here();
}

void script_settle_end(size_t slot, const char *id, const char *record)
{
    weir__pack_array(&ends_arg, 3);
    weir__pack_uint(&ends_arg, slot);
    weir__pack_str(&ends_arg, id, strlen(id));
    weir__pack_str(&ends_arg, record, strlen(record));
}

const char *script_settle_all(const char *node)
{
    script_settle_begin();
    script_settle_node(node, NULL, 0);
    script_settle_close();
    return script_settle(node[0], 0, "10");
}

const char *script_settle_one(const char *node, const char *id,
                              const char *slots)
{
    char name[17] = {0}, slot[8];

    memset(name, node[0], 12);
    memcpy(name + 12, node + 1, 4);
    (void)snprintf(slot, sizeof(slot), "%d",
                   (node[1] - '0') * 16 + node[2] - '0');
    script_begin(&weir__script_delay_settle_one, "run lease ids meta held");
    script_pack_key(node[0]);
    script_arg(name);
    script_arg(script_token);
    script_arg(slot);
    script_arg(id);
    script_arg(slots);
    script_arg("1");
    return script_call();
}
