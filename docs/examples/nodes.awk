# SPDX-License-Identifier: MIT
# awk -f nodes.awk [-v us=1.12] [-v busy=0.9] [-v wake=250] ...
#
# How many primaries a load needs, as docs/scale.md computes it. `us`: CPU time of
# a busy node for a job; `busy`: how busy nodes shall be; `wake`: jobs for each
# wake-up; `hear`: us of each other node for a wake-up; `client`: us of producers
# and workers together for a job.

function up(x) { return x == int(x) ? x : int(x) + 1 }

# us of the node that sends a wake-up
function send(nodes) { return nodes == 1 ? 0.4 : 2.2 + 0.3 * nodes }

# what all nodes together have to do in a second, in us
function work(load, nodes) {
    return load * us + load / wake * (send(nodes) + hear * (nodes - 1))
}

BEGIN {
    if (!us) us = 1.12
    if (!busy) busy = 0.9
    if (!wake) wake = 250
    if (!hear) hear = 1.5
    if (!client) client = 0.55
    printf "%11s %6s %7s %10s %10s %10s\n", "jobs/s", "nodes", "busy %",
        "wake-ups/s", "of them %", "processes"
    count = split("100000 500000 1000000 2000000 5000000 10000000", loads)
    for (i = 1; i <= count; i++) {
        load = loads[i]
        for (nodes = 1; work(load, nodes) > nodes * busy * 1e6; nodes++)
            if (nodes == 1000) {
                print "more than 1000 nodes"
                exit 1
            }
        printf "%11d %6d %7.0f %10d %10.1f %10d\n", load, nodes,
            work(load, nodes) / nodes / 1e4, load / wake,
            100 * (1 - load * us / work(load, nodes)),
            up(load * client / 0.7e6) + 1
    }
}
