/* SPDX-License-Identifier: MIT */

/* The server, or each primary of its cluster, as the last look found it. */

#include "adapters/web/api.h"
#include "adapters/web/nodes.h"
#include "core/mem.h"

static struct json_object *node_json(const struct weir__node *node)
{
    struct weir__field why = {0};

    if (node->why[0] != '\0')
        why = weir__field_str("why", node->why);
    return WEIR__OBJECT(
        weir__field_str("name", node->name),
        weir__field_bool("up", node->is_up), why,
        weir__field_str("role", node->is_primary ? "primary" : "replica"),
        weir__field_str("version", node->version),
        weir__field_number("replicas", node->replicas),
        weir__field_number("behind_bytes", node->behind_bytes),
        weir__field_number("clients", node->clients),
        weir__field_number("memory_bytes", node->memory_bytes),
        weir__field_number("memory_max_bytes", node->memory_max_bytes));
}

void weir__api_nodes(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    struct weir__node *list = NULL;
    const size_t count = weir__nodes_list(web->nodes, &list);
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < count; i++)
        array = weir__array_with(array, node_json(&list[i]));
    weir__mem_free(list);
    weir__api_answer_tagged(request, WEIR__OBJECT(weir__field("nodes", array)));
}
