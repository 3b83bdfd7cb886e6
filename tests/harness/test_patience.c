/* SPDX-License-Identifier: MIT */
#include "tests/harness/patience.h"
#include "tests/harness/test.h"

static long long elapsed(struct patience_reading to)
{
    struct patience_reading from = {
        .wall = 1000, .pressure = 500, .stolen = 200, .queued = 70};

    to.wall += from.wall;
    to.stolen += from.stolen;
    to.queued += from.queued;
    if (to.pressure < 0)
        from.pressure = -1;
    else
        to.pressure += from.pressure;
    return (long long)patience_elapsed(&from, &to);
}

TEST(on_an_idle_machine_patience_runs_at_wall_speed)
{
    EXPECT_INT(30, elapsed((struct patience_reading){.wall = 30}));
    EXPECT_INT(0, elapsed((struct patience_reading){.wall = 0}));
}

TEST(waits_for_a_cpu_do_not_count)
{
    EXPECT_INT(20,
               elapsed((struct patience_reading){.wall = 30, .pressure = 10}));
    EXPECT_INT(18,
               elapsed((struct patience_reading){.wall = 30, .stolen = 12}));
}

TEST(of_pressure_and_stolen_time_the_larger_counts)
{
    EXPECT_INT(20, elapsed((struct patience_reading){
                       .wall = 30, .pressure = 10, .stolen = 4}));
    EXPECT_INT(17, elapsed((struct patience_reading){
                       .wall = 30, .pressure = 10, .stolen = 13}));
}

TEST(patience_lasts_ten_times_as_long_at_most)
{
    EXPECT_INT(10,
               elapsed((struct patience_reading){.wall = 100, .pressure = 95}));
    EXPECT_INT(
        10, elapsed((struct patience_reading){.wall = 100, .pressure = 500}));
}

TEST(without_pressure_the_waits_of_the_group_count)
{
    EXPECT_INT(25, elapsed((struct patience_reading){
                       .wall = 30, .pressure = -1, .queued = 5}));
    EXPECT_INT(22, elapsed((struct patience_reading){
                       .wall = 30, .pressure = -1, .stolen = 8, .queued = 5}));
}

TEST(with_pressure_the_waits_of_the_group_do_not_count)
{
    EXPECT_INT(30,
               elapsed((struct patience_reading){.wall = 30, .queued = 20}));
}

TEST(waits_of_processes_that_ended_do_not_shorten_a_wait)
{
    EXPECT_INT(30, elapsed((struct patience_reading){
                       .wall = 30, .pressure = -1, .queued = -50}));
}

TEST(patience_ends)
{
    struct patience none = patience_start(0), hour = patience_start(3600);

    EXPECT_TRUE(patience_ended(&none));
    EXPECT_TRUE(!patience_ended(&hour));
}
