# SPDX-License-Identifier: MIT
"""The scripts as weir loads them."""

import hashlib
import os
import re

SCRIPTS = os.path.join(os.path.dirname(__file__),
                       "../../../adapters/redis/scripts")


def script_texts():
    """By SHA1 (of what weir loads): name, text."""
    texts = {}
    for file in sorted(os.listdir(SCRIPTS)):
        if not file.endswith(".lua"):
            continue
        with open(os.path.join(SCRIPTS, file), encoding="ascii") as source:
            text = source.read()
        text = re.sub("--#include ([a-z]+)\n", lambda found: open(
            os.path.join(SCRIPTS, "lib", found.group(1) + ".lua"),
            encoding="ascii").read(), text)
        texts[hashlib.sha1(text.encode()).hexdigest()] = (file[:-4], text)
    return texts
