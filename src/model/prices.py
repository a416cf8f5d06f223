#!/usr/bin/env python3
"""Writes prices.toml beside it from the price list in the PyPI package litellm (MIT licence).

    python3 prices.py [VERSION]        with pip and a network; the newest version without one

Only numbers are taken over, only of models that see pictures, and only for servers that deeplook knows.
"""

import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LIST = "litellm/model_prices_and_context_window_backup.json"
# The provider there, the beginning of its names, and the server here.
PROVIDERS = [
    ("openai", "", "api.openai.com"),
    ("gemini", "gemini/", "generativelanguage.googleapis.com"),
    ("anthropic", "", "api.anthropic.com"),
]
OTHER_USES = re.compile(r"audio|realtime|search|transcribe|tts|image|live|robotics|computer-use|^ft:|container")
DATED = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8})$")
RATES = [
    ("input", "input_cost_per_token"),
    ("cached_input", "cache_read_input_token_cost"),
    ("cache_write", "cache_creation_input_token_cost"),
    ("output", "output_cost_per_token"),
]
HEAD = """\
# What models cost, in US dollars per million tokens (pictures and thinking are tokens too). Made by prices.py from
# the price list of {source}; do not edit.
# A file of your own (--prices FILE) has the same keys; what it says of a model replaces this.
# `server`: the price holds only where the base URL contains this; without it, on any server.
# `cached_input`, `cache_write`: tokens that the server had kept, or keeps for later · `long`: for requests of more
# than `above` tokens · `batch`: for what is sent in a batch.
# A dated name ("gpt-5-2025-08-07") that is not here costs what the name without its date does.
written = "{written}"
source = "{source}"

[model]
"""


def rates(entry, suffix=""):
    """The prices under the names with this suffix; None unless both ways have one."""
    found = {key: entry.get(name + suffix) for key, name in RATES}
    if found["input"] is None or found["output"] is None:
        return None
    return {key: round(1e6 * rate, 6) for key, rate in found.items() if rate is not None}


def price(entry):
    found = rates(entry)
    if not found:
        return None
    if batch := rates(entry, "_batches"):
        found["batch"] = batch
    for thousands in (100, 128, 200, 272):
        if longer := rates(entry, f"_above_{thousands}k_tokens"):
            found["long"] = {"above": thousands * 1000} | longer
    return found


def written_as(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {written_as(one)}" for key, one in value.items()) + " }"
    return json.dumps(value) if isinstance(value, str) else f"{value:g}" if value < 1e4 else str(int(value))


def models(listed):
    for provider, prefix, server in PROVIDERS:
        found = {}
        for name, entry in listed.items():
            ours = entry.get("litellm_provider") == provider and name.startswith(prefix)
            asked = entry.get("mode") in ("chat", "responses") and entry.get("supports_vision")
            name = name[len(prefix) :]
            if ours and asked and not OTHER_USES.search(name) and (one := price(entry)):
                found[name] = {"server": server} | one
        for name, one in sorted(found.items()):
            if one != found.get(DATED.sub("", name)) or not DATED.search(name):
                yield name, one


def main():
    version = f"=={sys.argv[1]}" if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", folder, f"litellm{version}"], check=True)
        (wheel,) = pathlib.Path(folder).glob("litellm-*.whl")
        with zipfile.ZipFile(wheel) as package:
            listed = json.loads(package.read(LIST))
    source = "litellm " + wheel.name.split("-")[1]
    text = HEAD.format(source=source, written=datetime.date.today().isoformat())
    lines = [f"{json.dumps(name)} = {written_as(one)}" for name, one in models(listed)]
    pathlib.Path(__file__).with_suffix(".toml").write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} prices from {source}")


if __name__ == "__main__":
    main()
