# SPDX-License-Identifier: MIT
"""The same seed gives the same world in two builds."""

import os
import subprocess

from e2e import BUILD, expect, test

SEEDS = 1000


def hashes(build):
    return subprocess.run(
        [os.path.join(build, "tests", "sim_hashes"), str(SEEDS)], check=True,
        capture_output=True, text=True).stdout.split()


@test
def each_seed_gives_the_same_bytes_in_this_build_and_in_the_first(_place):
    """The first one is build/: gcc -O3. Run in it, this compares two runs."""
    own = hashes(BUILD)
    expect(SEEDS, len(set(own)))
    expect(hashes(os.path.join(os.path.dirname(BUILD), "build")), own)
