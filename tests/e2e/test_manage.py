# SPDX-License-Identifier: MIT
"""Managing jobs and topics: list, reschedule, pause, resume, purge, dead
requeue and purge, topic list, show and set."""

import os

from e2e import (Redis, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)

FAILING = "t=flaky?fail=9&verdict=fail"


def ids(jobs):
    return [job["id"] for job in jobs]


def add_dead(place, *job_ids):
    for job_id in job_ids:
        place.add("t", job_id)
    place.drain(FAILING)


@test
def list_shows_jobs_by_state_and_due_time(place):
    place.add("t", "late", "--delay", "2h")
    place.add("t", "soon", "--delay", "1h")
    place.add("t", "now")
    jobs = place.ok("list", "t")
    expect(["soon", "late", "now"], ids(jobs))
    expect(["scheduled", "scheduled", "ready"], [j["state"] for j in jobs])
    expect(["now"], ids(place.ok("list", "t", "--state", "ready")))
    expect([], place.ok("list", "t", "--state", "running"))
    lines = place.weir("list", "t").out.splitlines()
    expect(3, len(lines))
    expect_in("soon  scheduled  due 2", lines[0])


@test
def list_says_that_there_are_more_than_its_limit(place):
    place.add_many("t", 3, "--delay", "1h")
    result = place.weir("list", "t", "--limit", "2", "--json")
    expect(2, len(result.json))
    expect(["weir: there are more than 2; --limit N shows more"],
           result.sentences)
    expect([], place.weir("list", "t", "--limit", "3").sentences)


@test
def list_of_a_topic_with_dead_jobs_shows_their_reason(place):
    add_dead(place, "1")
    (job,) = place.ok("list", "t", "--state", "dead")
    expect(["1", "dead", "failed"], [job["id"], job["state"], job["reason"]])
    expect_in("1  dead  died 2", place.weir("list", "t").out)


@test
def a_rescheduled_job_has_its_new_due_time(place):
    place.add("t", "1", "--delay", "1h")
    expect({"topic": "t", "id": "1", "due_ms": 2000000000000},
           place.ok("reschedule", "t", "1", "--at", "2033-05-18T03:33:20Z"))
    expect(2000000000000, place.ok("show", "t", "1")["due_ms"])
    result = place.weir("reschedule", "t", "1", "--delay", "0ms")
    expect(0, result.code)
    expect_in("due 2", result.out)
    expect("ready", place.ok("show", "t", "1")["state"])


@test
def a_dead_job_cannot_be_rescheduled(place):
    add_dead(place, "1")
    place.weir("reschedule", "t", "1", "--delay", "1h").expect_complaint(
        1, 'job "1" in topic "t" is dead')


@test
def a_paused_topic_lets_nothing_through_until_it_is_resumed(place):
    expect({"topic": "t", "paused": True}, place.ok("pause", "t", "--new"))
    place.add("t", "1")
    worker = place.work(place.echo())
    eventually(lambda: place.stats("t")["paused"], "it is paused")
    result = place.weir("run", "--until-empty", "--handle", "t=echo")
    expect(1, result.code)
    expect_in('weir: topic "t" is paused and holds 1 jobs back', result.err)
    expect([], place.lines("out"))
    expect("resumed\n", place.weir("resume", "t").out)
    eventually(lambda: place.lines("out"), "the job runs")
    expect("1", place.lines("out")[0]["id"])
    stop_cleanly(worker)


@test
def purge_asks_first_and_then_deletes_everything(place):
    place.add_many("t", 3, "--delay", "1h")
    place.add("t", "now")
    place.weir("purge", "t").expect_complaint(
        2, 'purge would delete 4 jobs of topic "t"; give --yes to do so')
    expect({"topic": "t", "deleted": 4}, place.ok("purge", "t", "--yes"))
    expect([], place.ok("list", "t"))
    expect(4, place.stats("t")["added_total"])
    expect("deleted 0\n", place.weir("purge", "t", "--yes").out)


@test
def a_requeued_job_runs_again(place):
    add_dead(place, "1", "2")
    expect({"topic": "t", "requeued": 1}, place.ok("dead", "requeue", "t", "1"))
    job = place.ok("show", "t", "1")
    expect(["ready", 0, None], [job["state"], job["failures"], job["reason"]])
    expect(["2"], ids(place.ok("dead", "list", "t")))
    expect("requeued 1\n", place.weir("dead", "requeue", "t", "--all").out)
    place.drain(place.echo())
    expect(["1", "2"], sorted(ids(place.lines("out"))))


@test
def dead_jobs_are_purged_by_id_or_all(place):
    add_dead(place, "1", "2", "3")
    expect({"topic": "t", "deleted": 1}, place.ok("dead", "purge", "t", "2"))
    expect(["1", "3"], ids(place.ok("dead", "list", "t")))
    expect("deleted 2\n", place.weir("dead", "purge", "t", "--all").out)
    expect("deleted 0\n", place.weir("dead", "purge", "t", "--all").out)


@test
def what_is_not_dead_is_neither_requeued_nor_purged(place):
    place.add("t", "1", "--delay", "1h")
    for verb in ("requeue", "purge"):
        place.weir("dead", verb, "t", "1").expect_complaint(
            3, 'there is no dead job "1" in topic "t"')
    place.ok("show", "t", "1")


@test
def unknown_topics_and_ids_are_exit_3(place):
    place.add("t", "1", "--delay", "1h")
    for line in (("list", "nope"), ("resume", "nope"), ("purge", "nope"),
                 ("purge", "nope", "--yes"), ("topic", "show", "nope"),
                 ("reschedule", "nope", "1", "--delay", "1s"),
                 ("dead", "requeue", "nope", "--all"),
                 ("dead", "purge", "nope", "1"), ("stats", "nope", "--watch")):
        place.weir(*line).expect_complaint(3, 'there is no topic "nope"')
    place.weir("reschedule", "t", "2", "--delay", "1s").expect_complaint(
        3, 'there is no job "2" in topic "t"')
    expect(["t"], place.ok("topic", "list")["topics"])


@test
def an_unknown_topic_suggests_the_nearest(place):
    place.add("order.close", "1", "--delay", "1h")
    place.ok("topic", "set", "order.done", "weight=1")
    for line in (("list", "order.clsoe"), ("show", "order.clos", "1"),
                 ("stats", "orderclose"), ("stats", "oder.close", "--watch"),
                 ("resume", "order.clos"), ("purge", "order.clos", "--yes"),
                 ("delete", "order.clos", "1"), ("topic", "show", "order.clos"),
                 ("dead", "list", "order.clos"),
                 ("dead", "requeue", "order.clos", "--all"),
                 ("reschedule", "order.clos", "1", "--delay", "1s")):
        place.weir(*line).expect_complaint(
            3, 'there is no topic "o', '; did you mean "order.close"?')
    result = place.weir("list", "invoice").expect_complaint(3, '"invoice"')
    expect_true("mean" not in result.err, "nothing is near: " + result.err)
    place.redis().send("SADD weir:topics empty")
    result = place.weir("list", "empty").expect_complaint(3, '"empty"')
    expect_true("mean" not in result.err, "its own name: " + result.err)
    expect([], place.ok("list", "order.done"), "without jobs, and known")
    expect([], place.weir("list", "order.done").sentences)


@test
def a_new_topic_says_which_one_may_be_meant(place):
    place.add("order.close", "1", "--delay", "1h")
    place.ok("topic", "set", "order.close", "weight=2")
    wanted = 'weir: topic "order.clse" is new; did you mean "order.close"?'
    for sentences in ([wanted], []):  # then it is new no more
        result = place.weir("topic", "set", "order.clse", "weight=1")
        expect([0, sentences], [result.code, result.sentences])


@test
def no_topic_is_made_by_a_pause_that_does_not_ask_for_it(place):
    place.add("order.close", "1", "--delay", "1h")
    place.weir("pause", "order.clos").expect_complaint(
        3, 'there is no topic "order.clos"; did you mean "order.close"? '
        "--new makes it")
    place.weir("pause", "invoice").expect_complaint(
        3, 'there is no topic "invoice"; --new makes it')
    expect(["order.close"], [
        name for name in place.ok("topic", "list")["topics"]])
    expect([], place.weir("pause", "order.close").sentences)
    expect({"topic": "invoice", "paused": True},
           place.ok("pause", "invoice", "--new"))


@test
def topics_are_listed_in_byte_order(place):
    for topic in ("b", "a", "C"):
        place.add(topic, "1", "--delay", "1h")
    for verb in (["topic", "list"], ["topics"]):
        expect({"topics": ["C", "a", "b"]}, place.ok(*verb))
        expect("C\na\nb\n", place.weir(*verb).out)


@test
def stored_options_are_shown_and_removed(place):
    wanted = {"topic": "t", "kind": "delay", "paused": False,
              "options": {"retry": "1s 2s", "weight": "3"}}
    expect(wanted, place.ok("topic", "set", "t", "weight=3", "retry=1s 2s"))
    expect(wanted, place.ok("topic", "show", "t"))
    expect_in("retry         1s 2s\n", place.weir("topic", "show", "t").out)
    del wanted["options"]["retry"]
    expect(wanted, place.ok("topic", "set", "t", "retry="))


@test
def another_kind_is_refused_by_workers(place):
    place.ok("topic", "set", "t", "kind=delay")
    redis = Redis(os.path.join(place.data, "redis.sock"))
    redis.send("HSET weir:{t}:meta kind heap")
    expect(":0", redis.line())
    redis.close()
    result = place.weir("run", "--handle", "t=echo")
    expect(2, result.code)
    expect_in('weir: topic "t": kind: "heap" is not a kind that this '
              "version of weir can work with", result.err)


@test
def a_topic_that_changes_its_kind_begins_again(place):
    place.ok("topic", "set", "t", "kind=concurrent", "delay=0ms", "weight=3",
             "consumers=2", "parking=two-step")
    place.add_many("t", 3)
    place.drain("t=echo")
    changed = place.weir("topic", "set", "t", "kind=delay")
    expect(['weir: topic "t" was of kind concurrent: its totals begin again'],
           changed.sentences)
    stored = place.weir("topic", "set", "t", "kind=delay", "--json")
    expect([], stored.sentences)
    expect({"kind": "delay", "weight": "3"}, stored.json["options"])
    place.expect_stats("t", scheduled=0, ready=0, running=0, added_total=0,
                       done_total=0)
    place.add("t", "1")
    place.drain("t=echo")
    place.expect_stats("t", ready=0, running=0, done_total=1)


@test
def a_topic_that_changes_its_kind_goes_on_with_its_tokens(place):
    def token(job_id):
        place.add("t", job_id)
        exec_it = "t=exec?command=grep%20-o%20token.:%5B0-9%5D*"
        said = place.weir("run", "--until-empty", "--handle", exec_it).err
        return int(said.split('token":')[1].split()[0])

    tokens = [token("1"), token("2")]
    place.ok("topic", "set", "t", "kind=sync", "delay=0ms")
    tokens.append(token("3"))
    place.ok("topic", "set", "t", "kind=delay")
    tokens.append(token("4"))
    expect(sorted(set(tokens)), tokens)


@test
def dead_jobs_that_would_go_round_are_refused_when_they_are_stored(place):
    place.ok("topic", "set", "da", "on_dead=db")
    place.ok("topic", "set", "db", "on_dead=dc", "weight=2")
    place.ok("topic", "set", "x", "on_dead=da")
    result = place.weir("topic", "set", "dc", "weight=3", "on_dead=da")
    expect(2, result.code)
    expect(["weir: topic set: dc: on_dead: dead jobs would go round for ever, "
            "dc -> da -> db -> dc: write none in one of these topics"],
           result.sentences)
    expect(3, place.weir("topic", "show", "dc").code, "nothing was stored")
    place.ok("topic", "set", "db", "on_dead=")
    place.ok("topic", "set", "dc", "on_dead=da")


@test
def a_worker_does_not_let_stored_options_send_dead_jobs_round(place):
    for topic, target in (("da", "db"), ("db", "da")):
        place.ok("topic", "set", topic, "weight=1")
        redis = place.redis()
        redis.send("HSET weir:{%s}:options on_dead %s" % (topic, target))
        redis.line()
        redis.close()
    place.add("da", "1")
    flaky = "=flaky?fail=9&verdict=fail"
    result = place.drain("da" + flaky, "db" + flaky)
    expect_in("a stored option is ignored: on_dead: dead jobs would go round "
              "for ever, ", result.err)
    expect(1, sum(place.ok("stats", topic)["topics"][0]["dead"]
                  for topic in ("da", "db")))


@test
def a_topic_with_jobs_says_why_it_keeps_its_kind(place):
    place.add("t", "1", "--delay", "1h")
    result = place.weir("topic", "set", "t", "kind=list")
    expect(2, result.code)
    expect(["weir: topic set: t: the topic holds jobs and stays of kind delay: "
            "let it run empty, or purge it"], result.sentences)
    expect("delay", place.ok("topic", "show", "t")["kind"])
