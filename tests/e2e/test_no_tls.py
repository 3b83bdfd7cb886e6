# SPDX-License-Identifier: MIT
"""A weir that was built without TLS."""

import os
import subprocess

from e2e import BUILD, expect, expect_in, test


@test
def rediss_is_refused_with_the_reason_and_a_way_out(place):
    conf = place.write("weir.conf", 'redis { url = "rediss://localhost" }\n'
                                    'topic "t" { handler = echo }\n')
    for command in (["stats", "--redis", "rediss://localhost"],
                    ["doctor", "--redis", "rediss://localhost"],
                    ["run", "--handle", place.echo(), "--redis",
                     "rediss://a.example:6380?verify=none"],
                    ["check", "--config", conf]):
        place.weir(*command).expect_complaint(
            2, "rediss:// needs TLS", "built against hiredis",
            "hiredis 1.0 or newer, as in Debian 13", "stunnel")


@test
def the_benchmark_refuses_tls_likewise(place):
    done = subprocess.run(
        [os.path.join(BUILD, "weir-bench"), "throughput", "--transport", "tls"],
        env={**place.env, "TMPDIR": place.dir}, capture_output=True, text=True)
    expect(2, done.returncode, done.stderr)
    expect_in("rediss:// needs TLS", done.stderr)
    expect([], [name for name in os.listdir(place.dir)
                if name.startswith("weir-bench")])
