/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/resource.h>

#include "plugins/notify.h"
#include "tests/harness/test.h"

enum { LEFT_TO_THE_WORKER = 8, OF_A_LOOKUP = 6 };

static struct rlimit before;
static struct room room;

/* Exactly so many descriptors are free until `undo`. */
static void leave_free(int count)
{
    struct rlimit limit;
    int top = 0;

    while (count > 0)
        count -= fcntl(top++, F_GETFD) < 0 ? 1 : 0;
    EXPECT_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    limit = before;
    limit.rlim_cur = (rlim_t)top;
    EXPECT_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
    room = (struct room){.total = 100, .most = 100};
}

static void undo(void)
{
    EXPECT_INT(0, setrlimit(RLIMIT_NOFILE, &before));
}

TEST(a_lookup_starts_if_all_lookups_find_their_descriptors)
{
    struct room_share first = {0}, second = {0}, third = {0};

    leave_free(LEFT_TO_THE_WORKER + 2 * OF_A_LOOKUP);
    EXPECT_TRUE(room_for_lookup(&room, &first));
    EXPECT_TRUE(room_for_lookup(&room, &second));
    EXPECT_TRUE(!room_was_tight(&second));
    EXPECT_TRUE(!room_for_lookup(&room, &third));
    EXPECT_TRUE(room_was_tight(&third));
    EXPECT_TRUE(!room_for_socket(&room, &third));
    EXPECT_TRUE(room_for_socket(&room, &first));
    third = (struct room_share){0};
    EXPECT_TRUE(room_for_lookup(&room, &third));
    undo();
}

TEST(a_request_that_is_alone_may_try_with_the_last_descriptor)
{
    struct room_share first = {0}, second = {0};

    leave_free(1);
    EXPECT_TRUE(room_enter(&room) && room_enter(&room));
    EXPECT_TRUE(room_for_lookup(&room, &first));
    EXPECT_TRUE(room_was_tight(&first));
    EXPECT_TRUE(!room_for_socket(&room, &second));
    EXPECT_TRUE(room_for_socket(&room, &first));
    room_leave(&room, &first);
    EXPECT_TRUE(room_for_socket(&room, &second));
    room_leave(&room, &second);
    undo();
    EXPECT_INT(0, room.running + room.holding + room.resolving);
}

TEST(a_lack_halves_what_runs_once_a_second_and_answers_undo_it)
{
    room = (struct room){.total = 4, .most = 4};
    for (int i = 0; i < 9; i++) /* libcurl lets some of them wait */
        EXPECT_TRUE(room_enter(&room));
    EXPECT_TRUE(room_halve(&room, 5000));
    EXPECT_INT(4, room.most);
    room.running = 4;
    EXPECT_TRUE(!room_halve(&room, 5999));
    EXPECT_TRUE(room_halve(&room, 6000));
    EXPECT_INT(2, room.most);
    EXPECT_TRUE(!room_enter(&room));
    room.running = 1;
    EXPECT_TRUE(room_halve(&room, 7000));
    EXPECT_INT(1, room.most);
    EXPECT_TRUE(room_grow(&room) && room_enter(&room));
    EXPECT_TRUE(!room_enter(&room));
    EXPECT_TRUE(room_grow(&room) && room_grow(&room) && !room_grow(&room));
    EXPECT_INT(4, room.most);
}
