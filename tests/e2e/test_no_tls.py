# SPDX-License-Identifier: MIT
"""A weir that was built without TLS."""

from e2e import test


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
