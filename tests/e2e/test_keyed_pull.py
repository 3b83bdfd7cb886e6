# SPDX-License-Identifier: MIT
"""Jobs with keys that are pushed and pulled by programs of other languages,
beside workers of weir."""

from e2e import eventually, expect, run_together, stop_cleanly, test
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, keyed, ran,
                   set_topic, trace)
from wire_puller import Job, Wire


def push(wire, *ids, **options):
    """Jobs whose keys stand in their ids."""
    words = [word for option in options.items() for word in option]
    for job_id in ids:
        expect(job_id, wire.push(job_id, 1, "r0", "key", job_id.split("-")[0],
                                 *words))


def names(wire, pattern):
    return [name.decode() for name in wire.redis.keys("weir:{t}:" + pattern)]


def finish(wire, jobs, *verdict):
    expect([1] * len(jobs), wire.finish(*[(job, *verdict) for job in jobs]))


@test
def who_pulls_gets_one_job_of_each_key_at_a_time_the_urgent_first(place):
    wire = Wire(place)
    set_topic(place, "key_parallel=1", "retry=1h")
    push(wire, "a-0", "a-1", "b-0", "b-1", priority="low")
    push(wire, "c-0", priority="urgent")
    jobs = wire.pull()
    expect("c-0", jobs[0].id)
    expect(["a-0", "b-0", "c-0"], sorted(job.id for job in jobs))
    expect([], wire.pull_all())
    finish(wire, jobs[:1], "done")
    finish(wire, jobs[1:], "retry")
    expect(["a-1", "b-1"], sorted(job.id for job in wire.pull_all()))
    place.expect_stats("t", running=2, scheduled=2, done_total=1)


@test
def keys_whose_jobs_share_packs_take_turns_in_a_pull(place):
    wire = Wire(place)
    add_jobs(place, keyed("a", 4) + keyed("b", 4) + keyed("c", 3))
    expect(3, len(names(wire, "p:*")))
    ids = [job.id for job in wire.pull(12)]
    for at in range(0, 9, 3):
        expect(["a-%d" % (at // 3), "b-%d" % (at // 3), "c-%d" % (at // 3)],
               sorted(ids[at:at + 3]), ids)
    expect(["a-3", "b-3"], sorted(ids[9:]))
    place.expect_stats("t", running=11, ready=0)


@test
def each_verdict_by_wire_lets_the_next_job_of_its_key_start(place):
    wire = Wire(place)
    set_topic(place, "key_parallel=1")
    push(wire, *["a-%d" % i for i in range(8)])
    for verdict in (("done",), ("retry", "3600000", "x"), ("fail", "", "x"),
                    ("timeout", "3600000", "x"), ("snooze", "3600000"),
                    ("malformed",)):
        job, = wire.pull_all()
        finish(wire, [job], *verdict)
    job, = wire.pull_all()
    finish(wire, [job], "back")
    again, = wire.pull_all()
    expect(("a-6", "a-6"), (job.id, again.id))
    place.expect_stats("t", running=1, ready=1, scheduled=3, dead=2,
                       done_total=1)
    place.ok("delete", "t", "a-6")
    expect(["a-7"], [job.id for job in wire.pull_all()])


@test
def a_worker_and_one_who_pulls_share_keys(place):
    wire = Wire(place)
    set_topic(place, "key_parallel=1", "lease=1h")
    push(wire, "a-0", "a-1", "a-2", "b-0")
    jobs = wire.pull(1)
    expect(["a-0"], [job.id for job in jobs])
    worker = trace(place)
    await_ran(place, 1)
    await_sleepers(place)
    expect(["b-0"], ran(place))
    finish(wire, jobs, "done")
    await_ran(place, 3)
    await_stats(place, done_total=4)
    stop_cleanly(worker)
    expect(["b-0", "a-1", "a-2"], ran(place))
    expect([], names(wire, "on:*"))


@test
def a_suspect_of_a_key_comes_alone_and_before_the_rest_of_its_key(place):
    wire = Wire(place)
    set_topic(place, "key_parallel=1")
    push(wire, "a-0", "a-1", "b-0", "b-1")
    expect(["a-0", "b-0"], sorted(job.id for job in wire.pull()))
    wire.end_leases()
    suspects = []
    for job_id in ("a-0", "b-0"):
        answer = wire.ask()
        expect(1, answer[7], "a suspect")
        suspects += [Job(one) for one in answer[8]]
        expect(job_id, suspects[-1].id)
    expect(2, len(suspects), "each came alone")
    expect([], wire.pull(in_hand=2))
    finish(wire, suspects[:1], "done")
    expect(["a-1"], [job.id for job in wire.pull(in_hand=2)])
    finish(wire, suspects[1:], "back")
    expect([], wire.pull(in_hand=2), "a suspect waits in its lane")
    suspect, = wire.pull()
    expect("b-0", suspect.id)
    finish(wire, [suspect], "done")
    expect(["b-1"], [job.id for job in wire.pull()])
    place.expect_stats("t", running=2, ready=0, done_total=2)


@test
def what_expired_or_cannot_be_read_gives_its_key_back(place):
    wire = Wire(place)
    set_topic(place, "key_parallel=1")
    push(wire, "a-0", ttl_ms="1")
    eventually(lambda: place.stats("t")["ready"] == 1, "it is due")
    push(wire, "a-1")
    eventually(lambda: [job.id for job in wire.pull()] == ["a-1"],
               "the next of its key comes")
    place.expect_stats("t", expired_total=1, running=1)


@test
def a_push_may_have_both_keys_and_a_full_topic_has_nothing_of_it(place):
    wire = Wire(place)
    set_topic(place, "max_pending=2")
    push(wire, "a-0", unique="u")
    keys = wire.keys("t", b"wait", b"ids", b"meta", b"idle", b"options",
                     b"absent")

    def push_again(job_id, **options):
        words = [word for option in options.items() for word in option]
        return wire.run("push", keys, ["t", job_id, b"\x01", "r0", "key", "a",
                                       *words])

    expect([b"held", b"a-0"], push_again("a-1", unique="u"))
    expect([b"added", b"a-2"],
           push_again("a-2", **{"unique": "u", "else": "replace"}))
    push(wire, "b-0")
    before = wire.digest()
    expect(b"full", push_again("a-3")[0])
    expect(b"full", push_again("a-3", unique="v")[0])
    expect(before, wire.digest())
    expect(["a-2", "b-0"], sorted(job.id for job in wire.pull_all()))
    add_jobs(place, keyed("a", 1, 9))
    place.expect_stats("t", running=2, ready=1, added_total=4)


run_together(3)
