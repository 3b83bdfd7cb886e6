/* SPDX-License-Identifier: MIT */
#include "bench/body.h"
#include "bench/numbers.h"
#include "bench/row.h"
#include "bench/tally.h"
#include "bench/team.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct bench_tally *tally_of(int64_t jobs)
{
    void *memory = calloc(1, bench_tally_size(jobs));

    EXPECT_TRUE(memory != NULL);
    return bench_tally_init(memory, jobs);
}

TEST(a_job_that_was_never_handled_is_lost)
{
    struct bench_tally *tally = tally_of(4);

    (void)bench_tally_mark(tally, 0);
    (void)bench_tally_mark(tally, 3);
    EXPECT_INT(2, bench_tally_lost(tally));
    EXPECT_INT(0, bench_tally_duplicated(tally));
    free(tally);
}

TEST(a_job_that_was_handled_thrice_is_one_duplicated_job)
{
    struct bench_tally *tally = tally_of(2);

    EXPECT_TRUE(bench_tally_mark(tally, 1));
    EXPECT_TRUE(!bench_tally_mark(tally, 1));
    EXPECT_TRUE(!bench_tally_mark(tally, 1));
    EXPECT_INT(1, bench_tally_duplicated(tally));
    EXPECT_INT(1, bench_tally_lost(tally));
    free(tally);
}

TEST(a_loss_is_not_made_up_for_by_a_repeat)
{
    struct bench_tally *tally = tally_of(3);

    (void)bench_tally_mark(tally, 0);
    (void)bench_tally_mark(tally, 1);
    (void)bench_tally_mark(tally, 1);
    EXPECT_INT(1, bench_tally_lost(tally));
    EXPECT_INT(1, bench_tally_duplicated(tally));
    free(tally);
}

TEST(a_job_handled_256_times_is_not_taken_for_a_lost_one)
{
    struct bench_tally *tally = tally_of(1);

    for (int i = 0; i < 256; i++)
        (void)bench_tally_mark(tally, 0);
    EXPECT_INT(0, bench_tally_lost(tally));
    EXPECT_INT(1, bench_tally_duplicated(tally));
    free(tally);
}

TEST(foreign_numbers_are_told_apart)
{
    struct bench_tally *tally = tally_of(2);

    EXPECT_TRUE(!bench_tally_mark(tally, -1));
    EXPECT_TRUE(!bench_tally_mark(tally, 2));
    EXPECT_INT(2, tally->foreign);
    EXPECT_INT(2, bench_tally_lost(tally));
    free(tally);
}

TEST(a_median_leaves_out_what_is_no_number)
{
    double odd[] = {9, 1, 5}, even[] = {4, (double)NAN, 1, 2, 3};
    double none[] = {(double)NAN};

    EXPECT_TRUE(bench_median(odd, 3) == 5);
    EXPECT_TRUE(bench_median(even, 5) == 2.5);
    EXPECT_TRUE(isnan(bench_median(none, 1)));
}

static struct bench_row row_of_events(double handled, double dropped)
{
    struct bench_row row;

    bench_row_init(&row, "groups");
    row.figure[BENCH_handled] = handled;
    row.figure[BENCH_dropped_overflow] = dropped;
    row.figure[BENCH_lost] = 100 - handled - dropped;
    return row;
}

TEST(counts_of_events_are_those_of_one_repeat)
{
    struct bench_row repeats[] = {row_of_events(70, 30), row_of_events(50, 48),
                                  row_of_events(60, 40), row_of_events(90, 10)};
    struct bench_output output = {0};
    struct bench_row row;

    bench_row_init(&row, "groups");
    EXPECT_TRUE(bench_row_merge(&output, &row, repeats, 3));
    EXPECT_TRUE(row.figure[BENCH_handled] == 60);
    EXPECT_TRUE(row.figure[BENCH_dropped_overflow] == 40);
    EXPECT_TRUE(row.figure[BENCH_lost] == 2);
    EXPECT_TRUE(bench_row_merge(&output, &row, repeats, 4));
    EXPECT_TRUE(row.figure[BENCH_handled] == 60);
    EXPECT_TRUE(row.figure[BENCH_dropped_overflow] == 40);
    bench_output_fini(&output);
}

TEST(drops_are_the_worst_if_handled_is_not_counted)
{
    struct bench_row repeats[] = {row_of_events((double)NAN, 3),
                                  row_of_events((double)NAN, 5),
                                  row_of_events((double)NAN, 4)};
    struct bench_output output = {0};
    struct bench_row row;

    bench_row_init(&row, "compare");
    EXPECT_TRUE(bench_row_merge(&output, &row, repeats, 3));
    EXPECT_TRUE(row.figure[BENCH_dropped_overflow] == 5);
    bench_output_fini(&output);
}

TEST(percentiles_are_values_that_occurred)
{
    int64_t values[100];

    for (int i = 0; i < 100; i++)
        values[i] = 100 - i;
    bench_sort(values, 100);
    EXPECT_INT(50, bench_percentile(values, 100, 50));
    EXPECT_INT(99, bench_percentile(values, 100, 99));
    EXPECT_INT(100, bench_percentile(values, 100, 100));
    EXPECT_INT(7, bench_percentile((int64_t[]){7}, 1, 50));
}

TEST(a_body_has_exactly_so_many_bytes)
{
    static const int64_t sizes[] = {16,    41,    42,    43,     44,
                                    100,   266,   267,   268,    300,
                                    65548, 65549, 65550, 1048576};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_body body;
        size_t at = 10; /* behind the number and the key of the text */

        EXPECT_TRUE(bench_body_init(&body, sizes[i]));
        EXPECT_INT(sizes[i], body.len);
        if (body.bytes[at] == 0xd9)
            at += 2 + body.bytes[at + 1];
        else if (body.bytes[at] == 0xda)
            at += 3 + (size_t)(body.bytes[at + 1] << 8 | body.bytes[at + 2]);
        else if (body.bytes[at] == 0xdb)
            at += 5 + (size_t)(body.bytes[at + 2] << 16 |
                               body.bytes[at + 3] << 8 | body.bytes[at + 4]);
        else
            at += 1 + (body.bytes[at] & 31u);
        EXPECT_INT(sizes[i], at);
        bench_body_fini(&body);
    }
}

TEST(ids_have_twenty_bytes)
{
    char id[BENCH_ID_CAP];

    bench_id_write(id, 123456);
    EXPECT_STR("job-0000000000123456", id);
}

TEST(a_member_without_a_server_fails_with_a_sentence)
{
    struct bench_role role = {.url = "unix:///nowhere/at/all.sock",
                              .topic = "t",
                              .kind = "delay",
                              .jobs = 1,
                              .batch = 1,
                              .payload_bytes = BENCH_BODY_MIN};
    struct bench_team team;
    struct weir_error err = {0};

    EXPECT_INT(0, bench_team_init(&team, 1, false, &err));
    EXPECT_INT(WEIR_ECONN, bench_team_join(&team, &role, &err));
    EXPECT_STR("cannot reach redis: No such file or directory", err.text);
    bench_team_fini(&team);
}
