#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replay docs/wire-vectors.jsonl against an empty server; knows nothing of weir.

  wire_vectors.py FILE SCRIPTS SOCKET"""

import hashlib
import json
import os
import sys
import time

import msgpack
import redis
from patience import PATIENCE, Clock



def value_of(part, names):
    """What a part of a call stands for."""
    if isinstance(part, list):
        return [value_of(one, names) for one in part]
    if not isinstance(part, dict) or len(part) != 1:
        return part
    (word, of), = part.items()
    if word == "hex":
        return bytes.fromhex(of)
    if word == "msgpack":
        return msgpack.packb(value_of(of, names), use_bin_type=False)
    if word == "cat":
        return b"".join(bytes_of(value_of(one, names)) for one in of)
    if word == "slice":
        return value_of(of[0], names)[of[1]:of[2]]
    if word == "get":
        return names[of]
    if word == "sha1":
        return names["sha1 of " + of]
    return part


def bytes_of(value):
    return value if isinstance(value, bytes) else str(value).encode()


def fits(pattern, answer, names):
    """Whether an answer is what the pattern says; keeps what it names."""
    if isinstance(pattern, dict) and len(pattern) == 1:
        (word, of), = pattern.items()
        if word == "any":
            return True
        if word == "set":
            names[of] = answer
            return True
        if word == "error":
            return isinstance(answer, Exception) and str(answer).startswith(of)
        if word == "mod":
            return isinstance(answer, int) and answer % of[0] == of[1]
    if isinstance(pattern, list):
        return isinstance(answer, list) and len(answer) == len(pattern) and \
            all(fits(*both, names) for both in zip(pattern, answer))
    value = value_of(pattern, names)
    if value is None or isinstance(value, int):
        return answer == value
    return isinstance(answer, bytes) and answer == bytes_of(value)


def replay(path, scripts, server):
    """Returns how many calls were answered as they should be."""
    names, count = {}, 0
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for name in lines[0]["scripts"]:
        with open(os.path.join(scripts, name + ".lua"), "rb") as file:
            text = file.read()
        names["sha1 of " + name] = hashlib.sha1(text).hexdigest()
        server.execute_command("SCRIPT LOAD", text)
    for number, line in enumerate(lines, 1):
        clock = Clock(PATIENCE if line.get("until") else 0)
        while "call" in line:
            args = [bytes_of(value_of(arg, names)) for arg in line["call"]]
            pipe = server.pipeline(transaction=False)
            pipe.execute_command(*args)
            answer, = pipe.execute(raise_on_error=False)
            if fits(line["answer"], answer, names):
                count += 1
                break
            if clock.is_over():
                raise AssertionError("line %d: %r is not %r"
                                     % (number, answer, line["answer"]))
            time.sleep(0.005)
    return count


if __name__ == "__main__":
    print(replay(*sys.argv[1:3], redis.Redis(unix_socket_path=sys.argv[3])))
