/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/map.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/cluster/endpoint.h"
#include "adapters/redis/reply.h"
#include "core/assert.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    NOBODY = UINT16_MAX,      /* instead of a node's number */
    NOT_TOLD = UINT16_MAX - 1 /* of a draft: no range had the slot so far */
};
_Static_assert((int)WEIR__CLUSTER_NODES_MAX < (int)NOT_TOLD, "numbers");

struct weir__cluster_map {
    _Atomic size_t refs;
    size_t node_count;
    uint16_t node_of[WEIR__CLUSTER_SLOTS]; /* numbers of nodes, or NOBODY */
    struct weir__cluster_node nodes[];     /* each has slots; sorted */
};

/* --- references ---------------------------------------------------------- */

struct weir__cluster_map *weir__cluster_map_ref(struct weir__cluster_map *map)
{
    size_t before =
        atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);

    WEIR_ASSERT(before > 0);
    return map;
}

void weir__cluster_map_unref(struct weir__cluster_map *map)
{
    size_t before;

    if (map == NULL)
        return;
    before = atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel);
    WEIR_ASSERT(before > 0);
    if (before == 1)
        weir__mem_free(map);
}

/* --- what a map says ----------------------------------------------------- */

const struct weir__cluster_node *
weir__cluster_map_find(const struct weir__cluster_map *map, uint16_t slot)
{
    WEIR_ASSERT(slot < WEIR__CLUSTER_SLOTS);
    return map->node_of[slot] == NOBODY ? NULL
                                        : &map->nodes[map->node_of[slot]];
}

size_t weir__cluster_map_count(const struct weir__cluster_map *map)
{
    return map->node_count;
}

const struct weir__cluster_node *
weir__cluster_map_node(const struct weir__cluster_map *map, size_t index)
{
    WEIR_ASSERT(index < map->node_count);
    return &map->nodes[index];
}

bool weir__cluster_map_names(const struct weir__cluster_map *map,
                             const struct weir__redis_host *host)
{
    for (size_t i = 0; i < map->node_count; i++)
        if (weir__endpoint_equal(&map->nodes[i].host, host))
            return true;
    return false;
}

size_t weir__cluster_map_covered(const struct weir__cluster_map *map)
{
    size_t count = 0;

    for (size_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot++)
        count += map->node_of[slot] != NOBODY;
    return count;
}

bool weir__cluster_map_has_moved(const struct weir__cluster_map *before,
                                 const struct weir__cluster_map *now,
                                 uint16_t slot)
{
    const struct weir__cluster_node *one = weir__cluster_map_find(before, slot);
    const struct weir__cluster_node *other = weir__cluster_map_find(now, slot);

    if (one == NULL || other == NULL)
        return one != other;
    return !weir__endpoint_equal(&one->host, &other->host);
}

static int compare_nodes(const struct weir__cluster_node *one,
                         const struct weir__cluster_node *other)
{
    int order = strcmp(one->host.name, other->host.name);

    if (order == 0)
        order = (int)one->host.port - (int)other->host.port;
    if (order == 0)
        order = strcmp(one->id, other->id);
    return order != 0 ? order : strcmp(one->ip, other->ip);
}

static bool is_equal(const struct weir__cluster_map *one,
                     const struct weir__cluster_map *other)
{
    if (one->node_count != other->node_count ||
        memcmp(one->node_of, other->node_of, sizeof(one->node_of)) != 0)
        return false;
    for (size_t i = 0; i < one->node_count; i++)
        if (compare_nodes(&one->nodes[i], &other->nodes[i]) != 0)
            return false;
    return true;
}

void weir__cluster_map_check(const struct weir__cluster_map *map)
{
    bool has_slots[WEIR__CLUSTER_NODES_MAX] = {false};

    WEIR_ASSERT(map->refs > 0 && map->node_count <= WEIR__CLUSTER_NODES_MAX);
    for (size_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot++) {
        WEIR_ASSERT(map->node_of[slot] == NOBODY ||
                    map->node_of[slot] < map->node_count);
        if (map->node_of[slot] != NOBODY)
            has_slots[map->node_of[slot]] = true;
    }
    for (size_t i = 0; i < map->node_count; i++) {
        WEIR_ASSERT(has_slots[i] && map->nodes[i].host.name[0] != '\0');
        WEIR_ASSERT(i == 0 ||
                    compare_nodes(&map->nodes[i - 1], &map->nodes[i]) < 0);
    }
}

/* --- making one ---------------------------------------------------------- */

/* A node, and its number before the nodes are sorted. */
struct draft_node {
    struct weir__cluster_node node;
    uint16_t number;
    bool has_slots;
};

/* What becomes a map. */
struct draft {
    struct draft_node *nodes;
    size_t count;
    uint16_t node_of[WEIR__CLUSTER_SLOTS];
};

/* NULL: out of memory. */
static struct draft *draft_new(void)
{
    struct draft *draft = weir__mem_new(sizeof(*draft));

    for (size_t slot = 0; draft != NULL && slot < WEIR__CLUSTER_SLOTS; slot++)
        draft->node_of[slot] = NOT_TOLD;
    return draft;
}

static void draft_free(struct draft *draft)
{
    weir__mem_free(draft->nodes);
    weir__mem_free(draft);
}

/* Put the node behind the others. WEIR_EFULL, WEIR_ENOMEM. */
static int draft_push(struct draft *draft,
                      const struct weir__cluster_node *node,
                      uint16_t *ret_number)
{
    struct draft_node *nodes = draft->nodes;

    if (draft->count == WEIR__CLUSTER_NODES_MAX)
        return WEIR_EFULL;
    if ((draft->count & (draft->count - 1)) == 0) /* full: a power of two */
        nodes = weir__mem_grow(nodes, 2 * draft->count + 1, sizeof(nodes[0]));
    if (nodes == NULL)
        return WEIR_ENOMEM;
    draft->nodes = nodes;
    nodes[draft->count] =
        (struct draft_node){.node = *node, .number = (uint16_t)draft->count};
    *ret_number = (uint16_t)draft->count++;
    return WEIR_OK;
}

/* The number of a node, which most ranges share with one before them. */
static int draft_add(struct draft *draft, const struct weir__cluster_node *node,
                     uint16_t *ret_number)
{
    for (size_t i = draft->count; i > 0; i--)
        if (draft->nodes[i - 1].node.host.port == node->host.port &&
            compare_nodes(&draft->nodes[i - 1].node, node) == 0) {
            *ret_number = (uint16_t)(i - 1);
            return WEIR_OK;
        }
    return draft_push(draft, node, ret_number);
}

/* Those without slots last. */
static int by_use_and_address(const void *left, const void *right)
{
    const struct draft_node *one = left, *other = right;

    if (one->has_slots != other->has_slots)
        return one->has_slots ? -1 : 1;
    return compare_nodes(&one->node, &other->node);
}

/* Number the nodes by their address, leave out those without slots. Returns how
 * many are left. */
static size_t draft_sort(struct draft *draft)
{
    uint16_t number_of[WEIR__CLUSTER_NODES_MAX];
    size_t used = 0;

    for (size_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot++)
        if (draft->node_of[slot] < NOT_TOLD)
            draft->nodes[draft->node_of[slot]].has_slots = true;
    if (draft->count > 1)
        qsort(draft->nodes, draft->count, sizeof(draft->nodes[0]),
              by_use_and_address);
    for (size_t i = 0; i < draft->count; i++) {
        number_of[draft->nodes[i].number] = (uint16_t)i;
        used += draft->nodes[i].has_slots;
    }
    for (size_t slot = 0; slot < WEIR__CLUSTER_SLOTS; slot++)
        draft->node_of[slot] = draft->node_of[slot] < NOT_TOLD
                                   ? number_of[draft->node_of[slot]]
                                   : NOBODY;
    return used;
}

/* A reference to the map that the draft has become, or to `known` where that is
 * the same. */
static int draft_finish(struct draft *draft, struct weir__cluster_map *known,
                        struct weir__cluster_map **ret_map)
{
    size_t count = draft_sort(draft);
    struct weir__cluster_map *map =
        weir__mem_new(sizeof(*map) + count * sizeof(map->nodes[0]));

    if (map == NULL)
        return WEIR_ENOMEM;
    atomic_init(&map->refs, 1);
    map->node_count = count;
    memcpy(map->node_of, draft->node_of, sizeof(map->node_of));
    for (size_t i = 0; i < count; i++)
        map->nodes[i] = draft->nodes[i].node;
    if (known != NULL && is_equal(known, map)) {
        weir__cluster_map_unref(map);
        map = weir__cluster_map_ref(known);
    }
    *ret_map = map;
    return WEIR_OK;
}

/* --- reading ------------------------------------------------------------- */

/* Of the answer: "first last [host port id [name value ...]] ...". */
enum { FIRST, LAST, PRIMARY, HOST = 0, PORT, ID, MORE };

static int refuse(struct weir_error *err, size_t index, const char *why)
{
    return weir__error_set(err, WEIR_ESERVER,
                           "the answer to CLUSTER SLOTS is wrong: range %zu %s",
                           index + 1, why);
}

static const struct redisReply *array_at(const struct redisReply *reply,
                                         size_t index)
{
    if (index >= (size_t)reply->elements ||
        reply->element[index]->type != REDIS_REPLY_ARRAY)
        return NULL;
    return reply->element[index];
}

static bool is_printable(struct weir_slice text, size_t most)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return text.len <= most;
}

/* NULL where it is not a word. */
static const char *read_id(const struct redisReply *primary,
                           struct weir__cluster_node *node)
{
    struct weir_slice id;

    if ((size_t)primary->elements <= ID)
        return NULL; /* older than 4.0 */
    if (!weir__reply_str(primary, ID, &id) ||
        !is_printable(id, WEIR__CLUSTER_ID_MAX))
        return "has a node with a wrong id";
    memcpy(node->id, id.ptr, id.len);
    return NULL;
}

/* What is known besides, of which the address counts where the host is a
 * name. */
static void read_more(const struct redisReply *primary,
                      struct weir__cluster_node *node)
{
    const struct redisReply *more = array_at(primary, MORE);
    struct weir_slice name, value;

    for (size_t i = 0; more != NULL && i < (size_t)more->elements; i += 2)
        if (weir__reply_str(more, i, &name) &&
            weir__reply_str(more, i + 1, &value) &&
            weir__slice_equal(name, weir__slice_str("ip")) &&
            is_printable(value, WEIR__CLUSTER_IP_MAX)) {
            memcpy(node->ip, value.ptr, value.len);
            node->ip[value.len] = '\0';
        }
}

/* Why it is wrong, or NULL; then `*ret_is_known` says whether it has an
 * address. */
static const char *read_node(const struct redisReply *primary,
                             const struct weir__redis_host *asked,
                             struct weir__cluster_node *ret_node,
                             bool *ret_is_known)
{
    struct weir__cluster_node node = {.ip = ""};
    struct weir_slice host = {0};
    enum weir__endpoint endpoint;
    const char *why;
    int64_t port;

    if (primary == NULL || !weir__reply_int(primary, PORT, &port) ||
        (!weir__reply_str(primary, HOST, &host) &&
         primary->element[HOST]->type != REDIS_REPLY_NIL))
        return "has no node";
    endpoint = weir__endpoint_read(host, port, asked, &node.host);
    if (endpoint == WEIR__ENDPOINT_WRONG)
        return "has a node with a wrong address";
    why = read_id(primary, &node);
    read_more(primary, &node);
    *ret_is_known = endpoint == WEIR__ENDPOINT_KNOWN;
    *ret_node = node;
    return why;
}

/* Why the slots cannot be the node's, or NULL. */
static const char *take_slots(struct draft *draft, int64_t first, int64_t last,
                              uint16_t number)
{
    if (first < 0 || last >= WEIR__CLUSTER_SLOTS)
        return "has slots that no cluster has";
    if (first > last)
        return "ends before it begins";
    for (int64_t slot = first; slot <= last; slot++) {
        if (draft->node_of[slot] != NOT_TOLD)
            return "has slots of another one";
        draft->node_of[slot] = number;
    }
    return NULL;
}

static int read_range(struct draft *draft, const struct redisReply *reply,
                      size_t index, const struct weir__redis_host *asked,
                      struct weir_error *err)
{
    const struct redisReply *range = array_at(reply, index);
    struct weir__cluster_node node;
    uint16_t number = NOBODY;
    int64_t first, last;
    bool is_known;
    const char *why;
    int rc = WEIR_OK;

    if (range == NULL || !weir__reply_int(range, FIRST, &first) ||
        !weir__reply_int(range, LAST, &last))
        return refuse(err, index, "is none");
    why = read_node(array_at(range, PRIMARY), asked, &node, &is_known);
    if (why == NULL && is_known)
        rc = draft_add(draft, &node, &number);
    if (rc == WEIR_ENOMEM)
        return weir__error_set(err, rc, "out of memory");
    if (rc == WEIR_EFULL)
        why = "is that of one node too many";
    if (why == NULL)
        why = take_slots(draft, first, last, number);
    return why == NULL ? WEIR_OK : refuse(err, index, why);
}

static int read_ranges(struct draft *draft, const struct redisReply *reply,
                       const struct weir__redis_host *asked,
                       struct weir_error *err)
{
    int rc = WEIR_OK;

    if (reply->type == REDIS_REPLY_ERROR)
        return weir__error_set(err, WEIR_ESERVER, "%s", reply->str);
    if (reply->type != REDIS_REPLY_ARRAY)
        return weir__error_set(err, WEIR_ESERVER,
                               "the answer to CLUSTER SLOTS is no list");
    if ((size_t)reply->elements > WEIR__CLUSTER_SLOTS)
        return weir__error_set(
            err, WEIR_ESERVER,
            "the answer to CLUSTER SLOTS is wrong: it has %zu ranges",
            (size_t)reply->elements);
    for (size_t i = 0; rc == WEIR_OK && i < (size_t)reply->elements; i++)
        rc = read_range(draft, reply, i, asked, err);
    return rc;
}

int weir__cluster_map_read(const struct redisReply *reply,
                           const struct weir__redis_host *asked,
                           struct weir__cluster_map *known,
                           struct weir__cluster_map **ret_map,
                           struct weir_error *err)
{
    struct draft *draft = draft_new();
    int rc;

    if (draft == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    rc = read_ranges(draft, reply, asked, err);
    if (rc == WEIR_OK) {
        rc = draft_finish(draft, known, ret_map);
        if (rc != WEIR_OK)
            (void)weir__error_set(err, rc, "out of memory");
    }
    draft_free(draft);
    return rc;
}

/* --- one slot ------------------------------------------------------------ */

/* The first node at the address, else a new one. */
static int number_at(struct draft *draft, const struct weir__redis_host *host,
                     uint16_t *ret_number)
{
    struct weir__cluster_node node = {.host = *host};

    for (size_t i = 0; i < draft->count; i++)
        if (weir__endpoint_equal(&draft->nodes[i].node.host, host)) {
            *ret_number = (uint16_t)i;
            return WEIR_OK;
        }
    return draft_push(draft, &node, ret_number);
}

static int draft_with(struct draft *draft, const struct weir__cluster_map *map,
                      uint16_t slot, const struct weir__redis_host *host)
{
    uint16_t number;
    int rc = WEIR_OK;

    for (size_t i = 0; rc == WEIR_OK && i < map->node_count; i++)
        rc = draft_push(draft, &map->nodes[i], &number);
    if (rc == WEIR_OK)
        rc = number_at(draft, host, &number);
    if (rc != WEIR_OK)
        return rc;
    memcpy(draft->node_of, map->node_of, sizeof(map->node_of));
    draft->node_of[slot] = number;
    return WEIR_OK;
}

int weir__cluster_map_with(struct weir__cluster_map *map, uint16_t slot,
                           const struct weir__redis_host *host,
                           struct weir__cluster_map **ret_map)
{
    const struct weir__cluster_node *node = weir__cluster_map_find(map, slot);
    struct draft *draft;
    int rc;

    WEIR_ASSERT(host->name[0] != '\0');
    if (node != NULL && weir__endpoint_equal(&node->host, host)) {
        *ret_map = weir__cluster_map_ref(map);
        return WEIR_OK;
    }
    draft = draft_new();
    if (draft == NULL)
        return WEIR_ENOMEM;
    rc = draft_with(draft, map, slot, host);
    if (rc == WEIR_OK)
        rc = draft_finish(draft, NULL, ret_map);
    draft_free(draft);
    return rc;
}
