/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TREE_H
#define WEIR_TEST_TREE_H

/* tsearch(3), whose header has a `struct entry` of its own. NULL is an empty
 * tree. Items are the caller's. */

typedef int tree_order(const void *one, const void *other);

void *tree_find(void *const *root, const void *wanted, tree_order *order);

/* Ends the program when there is no memory. */
void tree_add(void **root, void *item, tree_order *order);
void tree_remove(void **root, const void *item, tree_order *order);

/* Calls `release` for each item; NULL: none is called. */
void tree_free(void **root, void (*release)(void *item));

#endif
