# SPDX-License-Identifier: MIT
"""What a caller may say. A refusal names the option and what was meant, before
anything is sent; clients/node/lib/check.js has the same sentences."""

import difflib
import math
import re
from typing import Any, Callable, Dict, List, Optional

import msgpack

DEPTH, HEADERS, HEADER = 32, 16, 256  # levels of a body; headers, bytes of one
YEARS_S = 3650 * 86400  # a delay, a ttl or a window is no longer
NAME = "[A-Za-z0-9._:-]{1,%d}"
ID = r'["-?A-z|~][!-z|~]{0,127}'
UNITS = {"w": 604800000, "d": 86400000, "h": 3600000, "m": 60000, "s": 1000,
         "ms": 1}
DURATION = "".join("(?:([0-9]{1,12})%s)?" % unit for unit in UNITS)
HEADER_NAME = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
HEADER_VALUE = "[!-~](?:[ -~]*[!-~])?"
# Names that other libraries have, without _ and in small letters.
MEANT = {"countdown": "delay", "eta": "at", "runat": "at", "when": "at",
         "expires": "ttl", "jobid": "id", "taskid": "id", "attempts": "retry",
         "backoff": "retry", "retries": "retry", "maxretries": "retry",
         "ladder": "retry", "uniquekey": "unique", "for": "unique_for",
         "else": "unique_else", "threads": "concurrency",
         "workers": "concurrency"}


def shown(value: Any) -> str:
    try:
        text = ascii(value) if isinstance(value, str) else repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def refuse(name: str, value: Any, rule: str) -> None:
    raise ValueError("the %s %s is not %s" % (name, shown(value), rule))


def unknown(call: str, name: str, names: Any) -> TypeError:
    def plain(text: str) -> str:
        return re.sub("(?<=.)ms$", "", text.replace("_", "").lower())
    known = {plain(one): one for one in names}
    meant = MEANT.get(plain(name)) or known.get(plain(name))
    near = difflib.get_close_matches(plain(name), known, 1, 0.7)
    if meant not in names:
        meant = known[near[0]] if near else None
    return TypeError('"%s" is no option of %s%s' % (
        name, call, ": %s is meant" % meant if meant else
        "; its options are " + ", ".join(names)))


def text_of(name: str, value: Any, most: int) -> str:
    """Not empty, and UTF-8."""
    rule = "a text of 1 to %d bytes in UTF-8" % most
    try:
        if not isinstance(value, str) or not 1 <= len(value.encode()) <= most:
            refuse(name, value, rule)
    except UnicodeEncodeError:
        refuse(name, value, rule)
    return value


def match(name: str, value: Any, pattern: str, rule: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        refuse(name, value, rule)
    return value


def topic(value: Any) -> str:
    return match("topic", value, NAME % 40, "1 to 40 of A-Z a-z 0-9 . _ : -")


def prefix(value: Any) -> str:
    return match("prefix", value, NAME % 32, "1 to 32 of A-Z a-z 0-9 . _ : -")


def job_id(value: Any) -> str:
    return match("id", value, ID, "1 to 128 visible ASCII characters without "
                 "{ and }, not beginning with @ or !")


def any_id(value: Any) -> str:
    """Also one that weir made."""
    return match("id", value, "@[-0-9A-Z_a-z]{14}|[!-z|~]{1,128}",
                 "that of a job: 1 to 128 visible ASCII characters")


def number(name: str, value: Any, least: float, most: float, what: str
           ) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or \
            not least <= value <= most:
        refuse(name, value, "%s from %.13g to %.13g" % (what, least, most))
    return value


def count(name: str, value: Any, most: int) -> int:
    if not isinstance(value, int):
        refuse(name, value, "a whole number from 1 to %d" % most)
    return int(number(name, value, 1, most, "a whole number"))


def delay_ms(name: str, value: Any, least: float = 0) -> int:
    return round(number(name, value, least, YEARS_S, "a number of seconds") *
                 1000)


def timeout(value: Any) -> Optional[float]:
    return value if value is None else number("timeout", value, 0.001, 86400,
                                              "a number of seconds")


def at_ms(name: str, value: Any) -> int:
    return round(number(name, value, 0, 9999999999.999,
                        "a number of seconds since 1970") * 1000)


def read_ms(text: str) -> Optional[int]:
    """Of 15s or 1h30m; None: it is none."""
    found = re.fullmatch(DURATION, text)
    if not found or not text:
        return None
    return sum(int(digits or 0) * factor
               for digits, factor in zip(found.groups(), UNITS.values()))


def ladder(name: str, value: Any) -> str:
    rule = "none, or a ladder such as 15s 3m 10m, of 1 to 64 steps of 1ms to " \
        "365d"
    if not isinstance(value, str):
        refuse(name, value, rule)
    words = re.sub(r"\.\.\.[ \t]*$", "", value)
    steps = [read_ms(word) for word in re.split("[ \t]+", words.strip(" \t"))]
    if value.strip(" \t") != "none" and not (
            len(steps) <= 64 and
            all(step and step <= 365 * 86400000 for step in steps)):
        refuse(name, value, rule)
    return value


def window(name: str, value: Any, words: Any = ()) -> str:
    ms = read_ms(value) if isinstance(value, str) else None
    if not (isinstance(value, str) and value in words) and \
            not (ms and ms <= YEARS_S * 1000):
        refuse(name, value, "".join(word + ", " for word in words) +
               "a time such as 10m, up to 3650d")
    return value


def one_of(name: str, value: Any, words: Any) -> str:
    if not isinstance(value, str) or value not in words:
        refuse(name, value, ", ".join(words[:-1]) + " or " + words[-1])
    return value


def headers(name: str, value: Any) -> Dict[str, str]:
    rule = "a dict of at most %d texts" % HEADERS
    if not isinstance(value, dict) or len(value) > HEADERS:
        refuse(name, value, rule)
    seen = set()
    for key, one in value.items():
        if not isinstance(key, str) or not re.fullmatch(HEADER_NAME, key) or \
                key.lower().startswith("weir.") or key.lower() in seen:
            refuse("header name", key, "one of its own, of letters, digits "
                   "and !#$%&'*+-.^_`|~, not beginning with weir.")
        if not isinstance(one, str) or not re.fullmatch(HEADER_VALUE, one) or \
                len(key) + len(one) > HEADER:
            refuse("header " + key, one, "visible ASCII with blanks only "
                   "within, 256 bytes at most with its name")
        seen.add(key.lower())
    return dict(value)


JOB: Dict[str, Callable[[str, Any], Any]] = {
    "delay": delay_ms, "at": at_ms, "retry": ladder,
    "ttl": lambda name, value: delay_ms(name, value, 0.001),
    "url": lambda name, value: text_of(name, value, 2048), "headers": headers}
# Of a job that is pushed.
KEYED: Dict[str, Callable[[str, Any], Any]] = {
    "key": lambda name, value: text_of(name, value, 2048),
    "priority": lambda name, value: one_of(
        name, value, ("urgent", "high", "normal", "low")),
    "unique": lambda name, value: text_of(name, value, 2048),
    "unique_for": lambda name, value: window(
        name, value, ("until-done", "until-start")),
    "unique_else": lambda name, value: one_of(
        name, value, ("reject", "replace", "debounce", "throttle")),
    "max_wait": window}


def options(call: str, given: Dict[str, Any]) -> Dict[str, Any]:
    """The options of a job as they are sent; None is not given."""
    names = ["id" if call == "add" else "ids", "timeout", *JOB]
    rules = JOB
    if call == "add":
        rules = {**JOB, **KEYED}
        names += KEYED
    told = {}
    for name, value in given.items():
        if name in KEYED and name not in rules:
            raise TypeError('"%s" is no option of %s: such jobs are added one '
                            'by one, by add' % (name, call))
        if name not in rules:
            raise unknown(call, name, names)
        if value is not None:
            told[name] = rules[name](name, value)
    if "delay" in told and "at" in told:
        raise ValueError("delay and at are two times: give one of them")
    for name in ("unique_for", "unique_else", "max_wait"):
        if name in told and "unique" not in told:
            raise ValueError("%s says something of a key: give unique, too"
                             % name)
    if told.get("unique_else") == "throttle" and \
            told.get("unique_for", "until")[:5] == "until":
        raise ValueError("throttle needs a window: give unique_for a time "
                         "such as 10m")
    if "max_wait" in told and told.get("unique_else") != "debounce":
        raise ValueError("only debounce has max_wait: give unique_else "
                         "debounce, or leave it out")
    return told


class Wrong(Exception):
    """A value of a body that no job can carry; `path` from inside out."""

    def __init__(self, text: str, kind: type = ValueError):
        super().__init__(text)
        self.text, self.kind, self.path = text, kind, []


def check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Wrong("has a lone surrogate, which is no UTF-8: give bytes")


def base_of(value: Any) -> Any:
    """Of a value whose own type is none of a body's."""
    if not isinstance(value, msgpack.ExtType):
        for kind in (str, int, float, bytes, bytearray, dict, list, tuple):
            if isinstance(value, kind):
                told = value.items() if kind is dict else value
                if kind in (dict, list, tuple) and \
                        len(value) != sum(1 for _ in told):
                    raise Wrong("is a %s whose length is not the number of its "
                                "values" % type(value).__name__, TypeError)
                return kind
    raise Wrong("is a %s, which no job can carry: give null, a bool, a number, "
                "a text, bytes, a list or a dict" % type(value).__name__,
                TypeError)


def check_value(value: Any, depth: int) -> None:
    kind = type(value)
    if depth > DEPTH:
        raise Wrong("is more than %d levels deep" % DEPTH)
    if value is None or kind is bool or kind is bytes:
        return
    if kind not in (str, int, float, dict, list, tuple):
        kind = base_of(value)
    if kind is str:
        if not value.isascii():
            check_text(value)
    elif kind is int:
        if not -1 << 63 <= value < 1 << 64:
            raise Wrong("is %s, beyond 64 bits: give a text" % shown(value))
    elif kind is float:
        if not math.isfinite(value):
            raise Wrong("is %s, which JSON does not have: give null or a text"
                        % value)
    elif kind is dict:
        check_dict(value, depth)
    elif kind is list or kind is tuple:
        check_list(value, depth)


def check_dict(value: Any, depth: int) -> None:
    for key, one in value.items():
        if not isinstance(key, str):
            raise Wrong("has the key %s: keys are texts" % shown(key),
                        TypeError)
        try:
            if not key.isascii():
                check_text(key)
            check_value(one, depth + 1)
        except Wrong as wrong:
            wrong.path.append("." + key)
            raise


def check_list(value: Any, depth: int) -> None:
    place = 0
    try:
        for one in value:
            check_value(one, depth + 1)
            place += 1
    except Wrong as wrong:
        wrong.path.append("[%d]" % place)
        raise


def body(value: Any) -> Any:
    """Refuses what msgpack and JSON cannot both carry exactly."""
    try:
        check_value(value, 1)
    except Wrong as wrong:
        path = ascii("body" + "".join(reversed(wrong.path)))[1:-1]
        raise wrong.kind("%s %s" % (
            path if len(path) <= 80 else path[:77] + "...",
            wrong.text)) from None
    return value


def listed(name: str, value: Any) -> List[Any]:
    if not isinstance(value, (list, tuple, range)):
        raise TypeError("the %s are a %s, not a list" % (name,
                                                         type(value).__name__))
    return list(value)
