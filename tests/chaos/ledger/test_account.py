# SPDX-License-Identifier: MIT
"""The account sees each thing that can be wrong."""


from account import Account, Fault, Job, read_runs
from e2e import expect, expect_in, expect_true, test

GOOD = "S 1 5 1 1000\nE 1 5 done 1010\n"


def job(**known):
    made = Job("1")
    made.is_acknowledged = True
    for name, value in known.items():
        setattr(made, name, value)
    return {"1": made}


def account(text, jobs=None, dead=None, faults=(), more=""):
    runs = read_runs("a", text) + read_runs("b", more)
    return Account(jobs or job(), runs, dead or {}, faults)


def expect_wrong(account_of, *words):
    expect(1, len(account_of.wrong), account_of.wrong)
    for word in words:
        expect_in(word, account_of.wrong[0])


@test
def a_job_that_was_done_is_accounted_for(_place):
    expect([], account(GOOD).wrong)
    expect_in("done 1, lost 0, repeated runs 0", account(GOOD).summary())


@test
def a_job_that_never_ran_is_lost(_place):
    expect_wrong(account(""), "lost")
    expect(["1"], account("").lost)


@test
def a_job_that_only_started_is_lost(_place):
    expect_wrong(account("S 1 5 1 1000\n"), "lost")
    expect_wrong(account("S 1 5 1 1000\nE 1 5 done 10"), "lost")


@test
def a_job_that_failed_and_is_not_dead_is_lost(_place):
    text = "S 1 5 1 1000\nE 1 5 fail 1010\n"
    expect_wrong(account(text), "lost")
    expect([], account(text, dead={"1": "failed"}).wrong)


@test
def a_dead_job_needs_a_reason(_place):
    expect_wrong(account(GOOD, dead={"1": ""}), "without a reason")
    expect_wrong(account(GOOD, dead={"1": "failed"}), "did not fail")


@test
def a_job_that_was_deleted_must_not_start(_place):
    expect([], account("", job(deleted_at=999)).wrong)
    expect_wrong(account(GOOD, job(deleted_at=999)), "after it was deleted")
    expect([], account(GOOD, job(deleted_at=1000)).wrong)


@test
def a_job_deleted_while_it_ran_may_be_gone(_place):
    expect([], account("S 1 5 1 1000\n", job(may_be_gone=True)).wrong)


@test
def a_job_must_not_start_early(_place):
    expect([], account(GOOD, job(not_before=1000)).wrong)
    expect_wrong(account(GOOD, job(not_before=1001)), "1 ms early")


@test
def a_job_that_nobody_added_is_told(_place):
    expect_wrong(account(GOOD + "S 2 6 1 1000\n"), "never added")


@test
def the_same_token_twice_is_told(_place):
    fault = Fault("kill", None, 1005)
    expect_wrong(account("S 1 5 1 1000\n", faults=[fault],
                         more="S 1 5 1 1010\nE 1 5 done 1010\n"), "one token")


@test
def a_repeated_run_needs_a_fault_of_its_worker(_place):
    again = "S 1 9 1 3000\nE 1 9 done 3010\n"
    expect_wrong(account(GOOD, more=again), "for no reason")
    for what, begin, end, is_good in (
            ("a", 2000, 2000, True), (None, 900, 1000, True),
            ("b", 2000, 2000, False), (None, 900, 999, False),
            ("a", 3001, 3001, False)):
        result = account(GOOD, more=again,
                         faults=[Fault("x", what, begin, end)])
        expect(is_good, not result.wrong, (what, begin, end))
        expect(1, len(result.repeated))
    expect([], account(GOOD, job(is_uncertain=True), more=again).wrong)
    expect_wrong(account(GOOD, more=again,
                         faults=[Fault("cut", None, 800, 999)]),
                 "faults before: cut of all 800-999")


@test
def who_starts_what_somebody_else_has_by_now_was_stopped(_place):
    late = "S 1 4 1 3000\nE 1 4 done 3010\n"
    for what, is_good in (("a", False), ("b", True)):
        result = account(GOOD, more=late,
                         faults=[Fault("stop", what, 900, 2000)])
        expect(is_good, not result.wrong, what)


@test
def a_retry_is_no_repeated_run(_place):
    result = account("S 1 5 1 1000\nE 1 5 retry 1010\n",
                     more="S 1 9 2 1100\nE 1 9 done 1100\n")
    expect([[], []], [result.wrong, result.repeated])


@test
def the_way_back_after_a_death_is_measured(_place):
    result = account("S 1 5 1 1000\n", more="S 1 9 1 2500\nE 1 9 done 2500\n",
                     faults=[Fault("kill", "a", 1200)])
    expect([1300], result.delays_after("a", 1200))
    for other, delay in ((1650, 1300), (1750, 750), (2500, 0), (2501, 1300)):
        expect([delay], result.delays_after_last(
            [("a", 1200), ("b", other)], 1000), other)
    expect_true(not result.wrong, result.wrong)
