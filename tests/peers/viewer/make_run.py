#!/usr/bin/env python3
"""Makes runs to look at out of a real one: many judgements, or hostile ones.

    make_run.py many TEMPLATE OUT COUNT     COUNT judgements with results.jsonl
    make_run.py hostile TEMPLATE OUT        every text an attack; damaged, missing and future traces
"""

import hashlib
import json
import random
import shutil
import sys
from pathlib import Path

LABELS = {
    "if": [("Flawless Execution", 100.0), ("Over Modification", 200 / 3), ("Wrong Action", 100 / 3), ("Localization Failure", 0.0)],
    "vc": [("Perfect Consistency", 100.0), ("Single Anomaly", 200 / 3), ("Multiple Anomalies", 100 / 3), ("Scene Collapse", 0.0)],
}
TYPES = ["Change Color", "Change Material", "Change Count", "Remove Object", "Replace Object", "Change Text", "Add Object"]
EDITORS = ["bagel", "flux-kontext", "gpt-image", "nano-banana", "omnigen2", "qwen-image-edit", "seedream", "step1x"]
MODELS = ["gpt-5.1", "qwen3-vl"]

# What would run, load, hide or break out, if anything let it.
ATTACK = (
    "\"'><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\"><svg onload=window.pwned=3></svg>"
    "</script></textarea></title></style></pre></template><a href=\"javascript:window.pwned=4\">link</a>"
    "<iframe srcdoc=\"<script>parent.pwned=5</script>\"></iframe><base href=http://attacker.invalid/>"
    "<link rel=stylesheet href=http://attacker.invalid/x.css><img src=http://attacker.invalid/x.png>"
    "<meta http-equiv=refresh content='0;url=http://attacker.invalid/'>{{ 7*7 }}{% for x in y %}${7*7}`"
    "-->]]>\u2028\u2029\u0000\u001b[31m\u202egnp.exe\u2066\ufeff javascript:window.pwned=6 ../../../etc/passwd "
)
# Values that a program reads; everything else that is text becomes an attack.
KEPT_KEYS = {"blob", "digest", "hash", "media", "format", "mode", "dialect", "form", "tool_choice", "outcome",
             "criterion", "files", "profile", "boxes", "parent", "source", "preprocessing", "settings", "role"}


def main():
    kind, template, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    shutil.rmtree(out, ignore_errors=True)
    (out / "judgements").mkdir(parents=True)
    shutil.copytree(template / "blobs", out / "blobs")
    bundles = [read(folder) for folder in sorted((template / "judgements").iterdir())]
    {"many": lambda: many(bundles, out, int(sys.argv[4])), "hostile": lambda: hostile(bundles, out)}[kind]()


def read(folder):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    return manifest, events


def write(out, name, manifest, events):
    """Writes a bundle; returns its digest."""
    folder = out / "judgements" / name
    folder.mkdir()
    text = json.dumps(manifest, indent=2) + "\n"
    seal, lines = hashlib.sha256(text.encode()).hexdigest(), []
    for seq, event in enumerate(events):
        body = json.dumps({"seq": seq, "at": event["at"], "event": event["event"]})[:-1]
        seal = hashlib.sha256(f"{seal}\n{body}".encode()).hexdigest()
        lines.append(f'{body},"seal":"{seal}"}}\n')
    texts = [text, "".join(lines)]
    for file, text in zip(["manifest.json", "events.jsonl"], texts):
        (folder / file).write_text(text, encoding="utf-8")
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    return hashlib.sha256(f"deeplook trace {manifest['format']['major']}\n{hashes[0]}\n{hashes[1]}\n".encode()).hexdigest()


def many(bundles, out, count):
    rng = random.Random(1)
    by_criterion = {c: [b for b in bundles if b[0]["criterion"] == c] for c in LABELS}
    with open(out / "results.jsonl", "w", encoding="utf-8") as results:
        for number in range(count):
            criterion = ["if", "vc"][number % 2]
            rest = number // 2
            model, rest = MODELS[rest % 2], rest // 2
            editor, case = EDITORS[rest % 8], rest // 8
            manifest, events = json.loads(json.dumps(rng.choice(by_criterion[criterion])))
            manifest["case"] |= {"id": f"{case:05}", "editor": editor, "facts": {"type": TYPES[case % 7]}}
            manifest["model"]["id"] = model
            label, score = rng.choices(LABELS[criterion], [4, 3, 2, 2])[0]
            outcome = {"outcome": "verdict", "label": label, "score": score}
            if rng.random() < 0.03:
                outcome = {"outcome": rng.choice(["abstained", "failed"]), "reason": "no answer by the last turn"}
            for event in events:
                for kind in ("decided", "finished"):
                    if kind in event["event"]:
                        event["event"][kind]["outcome"] = outcome
            name = f"{case:05}-{editor}-{criterion}-{model}".replace(".", "-")
            digest = write(out, name, manifest, events)
            line = {
                "case": f"{case:05}", "editor": editor, "type": TYPES[case % 7], "criterion": criterion,
                "instruction": manifest["case"]["instruction"], "mode": "tool", "repeat": 0, "model": model,
                "prompts": "dlebench/v1@503f6a741a76", "outcome": outcome["outcome"], "label": outcome.get("label"),
                "score": outcome.get("score"), "reason": outcome.get("reason"), "turns": rng.randint(2, 6),
                "usage": {"prompt_tokens": rng.randint(4000, 40000), "cached_tokens": None, "completion_tokens": rng.randint(200, 3000)},
                "cost": round(rng.random() / 10, 4), "seconds": round(rng.uniform(3, 60), 1),
                "trace": f"judgements/{name}", "digest": digest,
            }
            results.write(json.dumps(line) + "\n")


def attacked(value, key=None):
    """The same value with an attack before every text that is not for machines."""
    if key in KEPT_KEYS:
        return value
    if isinstance(value, dict):
        return {name: attacked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [attacked(inner, key) for inner in value]
    return ATTACK + value if isinstance(value, str) and value != "reply" else value


def hostile(bundles, out):
    for number, (manifest, events) in enumerate(bundles[:4]):
        case = {name: manifest["case"][name] for name in ("pictures", "regions")}
        evil = attacked(manifest)
        evil["case"] |= case | {"facts": {"type": ATTACK + "type"}, "editor": ATTACK + "editor"}
        evil["pack"] = manifest["pack"]
        evil["deeplook"] = ATTACK
        evil["tools"] = attacked(manifest["tools"])
        evil_events = attacked(events)
        for event in evil_events:
            for kind in ("decided", "finished"):
                if kind in event["event"]:
                    event["event"][kind]["outcome"] = {"outcome": "verdict", "label": ATTACK + "label", "score": 0.0}
                    if number == 1:
                        event["event"][kind]["outcome"] = {"outcome": "failed", "reason": ATTACK + "reason"}
        if number == 2:  # interrupted, after a failed attempt
            attempt = {"attempt": 1, "status": 500, "error": ATTACK + "error", "retry_after_ms": 10}
            evil_events = evil_events[:3] + [{"at": 0, "event": {"attempt_failed": {"part": 0, "turn": 1, "attempt": attempt}}}]
        if number == 3:  # pictures that are none
            svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>window.pwned=7</script></svg>"
            html = b"<!doctype html><script>window.pwned=8</script>"
            for name, content in (("reference", svg), ("edited", html)):
                blob = hashlib.sha256(content).hexdigest()
                (out / "blobs" / f"{blob}.png").write_bytes(content)
                evil["case"]["pictures"][name] = {"blob": blob, "size": {"width": 10, "height": 10}}
        write(out, f"hostile-{number}", evil, evil_events)
    manifest, events = bundles[4]
    write(out, "from-the-future", manifest | {"format": {"major": 99, "minor": 0}}, events)
    write(out, "missing-blob", manifest, events)
    (out / "blobs" / f"{manifest['case']['pictures']['edited']['blob']}.png").unlink()
    write(out, "damaged", *bundles[5])
    damaged = out / "judgements/damaged/events.jsonl"
    damaged.write_text("{not json\n" + damaged.read_text(encoding="utf-8"), encoding="utf-8")
    # Lines that lead elsewhere.
    lines = [{"case": f"escape {trace}", "criterion": "if", "label": "x", "trace": trace}
             for trace in ("../../../../etc", "/etc", "judgements/../../x", ATTACK)]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "not json\n"
    (out / "results.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
