/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/mem.h"
#include "core/run.h"
#include "core/ticket.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"

TEST(a_ticket_finds_its_run_until_it_is_dropped)
{
    struct weir__tickets tickets = {0};
    struct weir__run one, other;
    uint64_t first = weir__ticket_take(&tickets, &one);
    uint64_t second = weir__ticket_take(&tickets, &other);

    EXPECT_TRUE(first != 0 && second != 0 && first != second);
    EXPECT_TRUE(weir__ticket_find(&tickets, first) == &one);
    EXPECT_TRUE(weir__ticket_find(&tickets, second) == &other);
    weir__ticket_drop(&tickets, first);
    weir__tickets_check(&tickets);
    EXPECT_TRUE(weir__ticket_find(&tickets, first) == NULL);
    EXPECT_TRUE(weir__ticket_find(&tickets, second) == &other);
    weir__tickets_fini(&tickets);
}

TEST(a_place_that_is_used_again_has_another_ticket)
{
    struct weir__tickets tickets = {0};
    struct weir__run one, other;
    uint64_t first = weir__ticket_take(&tickets, &one), second;

    weir__ticket_drop(&tickets, first);
    second = weir__ticket_take(&tickets, &other);
    EXPECT_TRUE(first != second);
    EXPECT_TRUE(weir__ticket_find(&tickets, first) == NULL);
    EXPECT_TRUE(weir__ticket_find(&tickets, second) == &other);
    weir__tickets_fini(&tickets);
}

TEST(what_nobody_took_finds_nothing)
{
    struct weir__tickets tickets = {0};

    EXPECT_TRUE(weir__ticket_find(&tickets, 0) == NULL);
    EXPECT_TRUE(weir__ticket_find(&tickets, UINT64_MAX) == NULL);
    EXPECT_TRUE(weir__ticket_find(&tickets, UINT64_C(1) << 32) == NULL);
}

TEST(the_table_grows)
{
    static struct weir__run runs[1000];
    static uint64_t taken[1000];
    struct weir__tickets tickets = {0};

    for (int i = 0; i < 1000; i++)
        taken[i] = weir__ticket_take(&tickets, &runs[i]);
    weir__tickets_check(&tickets);
    for (int i = 0; i < 1000; i++)
        EXPECT_TRUE(weir__ticket_find(&tickets, taken[i]) == &runs[i]);
    for (int i = 0; i < 1000; i += 2)
        weir__ticket_drop(&tickets, taken[i]);
    weir__tickets_check(&tickets);
    EXPECT_INT(500, tickets.taken);
    weir__tickets_fini(&tickets);
}

static char *name_of(const char *text)
{
    char *name = weir__mem_new(strlen(text) + 1);

    EXPECT_TRUE(name != NULL);
    memcpy(name, text, strlen(text));
    return name;
}

TEST(an_orphan_is_kept_until_it_was_shown)
{
    char *name;
    struct weir__tickets tickets = {0};
    struct weir__run one, other;
    uint64_t first = weir__ticket_take(&tickets, &one);
    uint64_t second = weir__ticket_take(&tickets, &other);

    weir__ticket_orphan(&tickets, first, name_of("orders 1"));
    weir__tickets_check(&tickets);
    EXPECT_TRUE(weir__ticket_find(&tickets, first) == NULL);
    EXPECT_TRUE(weir__ticket_shown(&tickets, second) == NULL);
    EXPECT_INT(1, tickets.orphans);
    name = weir__ticket_shown(&tickets, first);
    EXPECT_STR("orders 1", name);
    weir__mem_free(name);
    EXPECT_TRUE(weir__ticket_shown(&tickets, first) == NULL);
    EXPECT_INT(0, tickets.orphans);
    weir__ticket_orphan(&tickets, second, name_of("orders 2")); /* kept */
    weir__tickets_check(&tickets);
    weir__tickets_fini(&tickets);
}

TEST(without_memory_there_is_no_ticket)
{
    struct weir__tickets tickets = {0};
    struct weir__run run;

    oom_after(0);
    EXPECT_INT(0, weir__ticket_take(&tickets, &run));
    oom_off();
    EXPECT_TRUE(weir__ticket_take(&tickets, &run) != 0);
    weir__tickets_check(&tickets);
    weir__tickets_fini(&tickets);
}
