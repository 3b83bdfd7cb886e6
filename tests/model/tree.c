/* SPDX-License-Identifier: MIT */
#include "tests/model/tree.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>

void *tree_find(void *const *root, const void *wanted, tree_order *order)
{
    void *found = tfind(wanted, root, order);

    return found == NULL ? NULL : *(void **)found;
}

void tree_add(void **root, void *item, tree_order *order)
{
    if (tsearch(item, root, order) == NULL) {
        (void)fprintf(stderr, "there is no memory for a tree\n");
        exit(1);
    }
}

void tree_remove(void **root, const void *item, tree_order *order)
{
    (void)tdelete(item, root, order);
}

static void keep(void *item)
{
    (void)item;
}

void tree_free(void **root, void (*release)(void *item))
{
    tdestroy(*root, release == NULL ? keep : release);
    *root = NULL;
}
