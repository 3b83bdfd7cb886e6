# SPDX-License-Identifier: MIT
"""A walk through all that a `delay` topic has on the server, in one step, and
what of it does not fit together (docs/packs.md)."""

import collections

from e2e import expect
from server import Client

# For each pack: its key, time to live, first 8 bytes and ids.
READ = """
local base, packs = 'weir:{' .. ARGV[1] .. '}:', {}
local function read(command, key, ...)
  return redis.call(command, base .. key, ...)
end
for _, key in ipairs(redis.call('KEYS', base .. 'p:*')) do
  local head, ids = redis.call('GETRANGE', key, 0, 7), {}
  if #head == 8 and string.byte(head, 5) % 2 == 1 then
    local size = string.byte(head, 6) + 256 * string.byte(head, 7) +
                 65536 * string.byte(head, 8)
    ids = cmsgpack.unpack(redis.call('GETRANGE', key, 8, size - 1))
  end
  packs[#packs + 1] = { string.sub(key, #base + 3),
                        redis.call('PTTL', key), head, ids }
end
return { packs, read('ZRANGE', 'wait', 0, -1, 'WITHSCORES'),
         read('ZRANGE', 'run', 0, -1, 'WITHSCORES'),
         read('ZRANGE', 'lease', 0, -1), read('HGETALL', 'ids'),
         read('ZRANGE', 'dead', 0, -1), read('HKEYS', 'rec'),
         read('HGETALL', 'meta'), read('HKEYS', 'held'),
         read('HKEYS', 'due') }
"""


def expect_sound(server, topics, what):
    """All that topics have on a server fits together."""
    client = Client(server.socket, raw=True)
    try:
        for topic in topics:
            expect([], Walk(client, topic).wrong[:5],
                   "%s, topic %s" % (what, topic))
    finally:
        client.close()


class Pack:
    def __init__(self, ttl, head, ids):
        self.is_staged = ttl >= 0
        self.is_sound = len(head) == 8 and head[:2] == b"W1"
        self.slots = head[2] + 1 if self.is_sound else 0
        self.gone = head[3] if self.is_sound else 0
        self.ids = [name.decode() for name in ids]
        self.live = set()


def bounds(node):
    lo1, lo0, hi1, hi0 = (byte - 48 for byte in node[12:16].encode())
    return lo1 * 16 + lo0, hi1 * 16 + hi0


class Walk:
    """`client` reads raw. What is wrong is in `wrong`, as sentences."""

    def __init__(self, client, topic):
        packs, wait, run, leases, ids, dead, rec, meta, held, due = \
            client.call("EVAL", READ, "0", topic)
        self.wrong = []
        self.packs = {seq.decode(): Pack(ttl, head, names)
                      for seq, ttl, head, names in packs}
        self.leases = {int(token) for token in leases}
        self.ids = dict(zip((name.decode() for name in ids[::2]),
                            (place.decode() for place in ids[1::2])))
        self.ids.pop("!", None)
        self.meta = collections.Counter(
            {name.decode(): int(value)
             for name, value in zip(meta[::2], meta[1::2])
             if value.lstrip(b"-").isdigit()})
        self.waiting = self.look_at_nodes("wait", wait)
        self.running = self.look_at_nodes("run", run)
        for seq, pack in self.packs.items():
            self.look_at_pack(seq, pack)
        self.look_at_ids({name.decode() for name in dead},
                         {name.decode() for name in rec})
        self.look_at_counters()
        self.look_at_times({int(token) for token in held},
                           {seq.decode() for seq in due})

    def expect(self, is_right, text, *args):
        if not is_right:
            self.wrong.append(text % args)

    def look_at_nodes(self, key, nodes):
        """Returns how many jobs are in them."""
        jobs = 0
        for node, score in zip(nodes[::2], nodes[1::2]):
            node = node.decode()
            lo, hi = bounds(node)
            jobs += hi - lo + 1
            pack = self.packs.get(node[:12])
            if pack is None:
                self.wrong.append("%s of %s: its pack is gone" % (node, key))
                continue
            slots = set(range(lo, hi + 1))
            self.expect(not slots & pack.live, "%s: in two nodes", node)
            self.expect(hi < pack.slots, "%s: the pack has %d slots", node,
                        pack.slots)
            self.expect(key == "wait" or int(float(score)) in self.leases,
                        "%s: no lease %s", node, score)
            pack.live |= slots
        return jobs

    def look_at_pack(self, seq, pack):
        if pack.is_staged:
            self.expect(not pack.live, "%s: has jobs and will vanish", seq)
            return
        self.expect(pack.live, "%s: nobody's", seq)
        self.expect(pack.gone == pack.slots - len(pack.live),
                    "%s: %d of %d slots are gone, not %d", seq,
                    pack.slots - len(pack.live), pack.slots, pack.gone)
        for slot in pack.live if pack.ids else ():
            self.expect(self.ids.get(pack.ids[slot]) == seq,
                        "%s: the index has %s for %s", seq,
                        self.ids.get(pack.ids[slot]), pack.ids[slot])

    def look_at_ids(self, dead, rec):
        for name, place in self.ids.items():
            pack = self.packs.get(place)
            self.expect(place == "D" or pack is not None and any(
                pack.ids[slot] == name for slot in pack.live if pack.ids),
                "%s: an id without a job, of %s", name, place)
        at_rest = {name for name, place in self.ids.items() if place == "D"}
        self.expect(dead == rec == at_rest, "the dead: %s, %s, %s",
                    sorted(dead), sorted(rec), sorted(at_rest))

    def look_at_times(self, held, due):
        self.expect(held <= self.leases, "held without a lease: %s",
                    sorted(held - self.leases))
        self.expect(due <= set(self.packs), "times of packs that are gone: %s",
                    sorted(due - set(self.packs)))

    def look_at_counters(self):
        meta = self.meta
        waiting = (meta["added"] + meta["retried"] + meta["snoozed"] +
                   meta["returned"] + meta["requeued"] - meta["claimed"] -
                   meta["delwait"])
        running = (meta["claimed"] - meta["settled"] - meta["returned"] -
                   meta["delrun"])
        self.expect(waiting == self.waiting, "%d wait, counted are %d",
                    self.waiting, waiting)
        self.expect(running == self.running, "%d run, counted are %d",
                    self.running, running)
