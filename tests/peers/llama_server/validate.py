"""Checks recorded requests against the typed request models of the packages openai and anthropic.

    python validate.py FOLDER        every NUMBER.json in it, as record.py writes them
"""

import json
import pathlib
import sys
import typing

import pydantic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

FORMS = {
    "/chat/completions": CompletionCreateParamsNonStreaming,
    "/responses": ResponseCreateParamsNonStreaming,
    "/messages": MessageCreateParamsNonStreaming,
}
# What only a llama.cpp server takes.
OWN = {"grammar", "seed"}


def consumed(value):
    """Iterables are only checked while they are read."""
    if isinstance(value, dict):
        return {key: consumed(one) for key, one in value.items()}
    if isinstance(value, (str, bytes)) or not isinstance(value, typing.Iterable):
        return value
    return [consumed(one) for one in value]


def main():
    counts = {}
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        kept = json.loads(file.read_text(encoding="utf-8"))
        path = "/" + kept["path"].split("/", 2)[2]
        form = FORMS[path]
        body = {key: value for key, value in kept["body"].items() if key not in OWN}
        unknown = set(body) - set(typing.get_type_hints(form))
        assert not unknown, f"{file}: {path} has no {unknown}"
        consumed(pydantic.TypeAdapter(form).validate_python(body))
        counts[path] = counts.get(path, 0) + 1
    assert set(counts) == set(FORMS), f"not every wire was asked: {counts}"
    print("requests that the typed models take: " + ", ".join(f"{path} {n}" for path, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
