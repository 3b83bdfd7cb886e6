# SPDX-License-Identifier: MIT
"""The scripts as weir loads them."""

import glob
import hashlib
import os
import re

SCRIPTS = os.path.join(os.path.dirname(__file__),
                       "../../../adapters/redis/scripts")


def included(found):
    """What a line stands for: see cmake/embed_lua.cmake."""
    name = found.group(1)
    path = name if "/" in name else "lib/" + name
    with open(os.path.join(SCRIPTS, path + ".lua"), encoding="ascii") as file:
        text = file.read()
    return re.sub(r"(?m)^--#include .*\n", "", text) if "/" in name else text


def script_texts():
    """By SHA1 (of what weir loads): name, text."""
    texts = {}
    for path in sorted(glob.glob(os.path.join(SCRIPTS, "*/*.lua"))):
        name = os.path.relpath(path, SCRIPTS)[:-4]
        if name.startswith("lib/"):
            continue
        with open(path, encoding="ascii") as source:
            text = source.read()
        while "--#include " in text:
            text = re.sub("--#include ([a-z_/]+)\n", included, text)
        text = "".join(line for line in map(str.lstrip,
                                            text.splitlines(keepends=True))
                       if line and not line.startswith("--"))
        texts[hashlib.sha1(text.encode()).hexdigest()] = (name, text)
    return texts
