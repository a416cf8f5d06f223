"""Checks recorded requests against the typed request models of the packages openai and anthropic.

    python validate.py FOLDER        every NUMBER.json in it, as record.py writes them
"""

import collections.abc
import json
import os
import pathlib
import sys
import types
import typing

import pydantic
import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from typing_extensions import NotRequired, Required, TypedDict

FORMS = {
    "/chat/completions": CompletionCreateParamsNonStreaming,
    "/responses": ResponseCreateParamsNonStreaming,
    "/messages": MessageCreateParamsNonStreaming,
}
# What only a llama.cpp server takes.
OWN = {"grammar", "seed"}


def eager(form, known):
    """The same type with lists for what is only iterable, which would be checked while it is read, and with no
    other keys than it names."""
    origin, inner = typing.get_origin(form), typing.get_args(form)
    if typing_extensions.is_typeddict(form):
        if form not in known:
            hints = typing.get_type_hints(form)
            needed = form.__required_keys__
            fields = {key: (Required if key in needed else NotRequired)[eager(hint, known)] for key, hint in hints.items()}
            known[form] = TypedDict(form.__name__, fields)
            known[form].__pydantic_config__ = pydantic.ConfigDict(extra="forbid")
        return known[form]
    if origin is typing.IO or form is typing.IO or isinstance(form, type) and issubclass(form, os.PathLike):
        # No file can be in JSON, only its text.
        return str
    if origin is collections.abc.Iterable:
        return list[eager(inner[0], known)]
    if origin in (list, dict, collections.abc.Sequence):
        return origin[tuple(eager(one, known) for one in inner)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(eager(one, known) for one in inner)]
    return form


def main():
    counts = {}
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        kept = json.loads(file.read_text(encoding="utf-8"))
        path = "/" + kept["path"].split("/", 2)[2]
        form = FORMS[path]
        body = {key: value for key, value in kept["body"].items() if key not in OWN}
        pydantic.TypeAdapter(eager(form, {})).validate_python(body)
        counts[path] = counts.get(path, 0) + 1
    assert set(counts) == set(FORMS), f"not every wire was asked: {counts}"
    print("requests that the typed models take: " + ", ".join(f"{path} {n}" for path, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
